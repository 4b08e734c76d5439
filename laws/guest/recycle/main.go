// Recycle as a module: the path choice of Ultra Ethernet's simulator.
//
//spin:library recycle 1.0
package main

import (
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/spin"
)

// law handles an event of a flow.
//
//go:wasmexport law
func law(f *spin.Flow, s *laws.State) spin.Code {
	if f.Event == spin.FlowBegins {
		laws.RecycleNumbers(s)
	}
	laws.Recycle(f, s)
	return spin.Success
}

func main() {}
