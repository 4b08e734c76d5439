// NSCC as a module: the rate law of Ultra Ethernet's senders.
//
//spin:library nscc 1.0
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
		laws.NSCCNumbers(s)
	}
	laws.NSCC(f, s)
	return spin.Success
}

func main() {}
