// The handler of package work.
package main

import (
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/spin"
)

//go:wasmexport payload
func payload(p *spin.Payload, s *work.State) spin.Code {
	x := work.Seed(p.Offset)
	for n := s.Iterations; n > 0; n-- {
		x = work.Step(x)
	}
	s.Results[uint(spin.MyHPU())%work.MaxHPUs] = x
	return spin.Success
}

func main() {}
