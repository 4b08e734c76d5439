// Spends a chosen time per packet (sPIN'17 §4.4.2); nothing is deposited.
//
//spin:library work 1.0
package main

import (
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/spin"
)

// payload runs its loop as often as the state's Iterations, and leaves the
// result in the slot of its HPU.
//
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
