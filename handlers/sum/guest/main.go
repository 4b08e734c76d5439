// Adds up the payload bytes of messages in HPU memory; never suspends.
//
//spin:library sum 1.0
package main

import (
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/spin"
)

// payload adds the bytes of a packet to the sum of its HPU.
//
//go:wasmexport payload
func payload(p *spin.Payload, s *sum.State) spin.Code {
	var total uint64
	for _, b := range p.Bytes() {
		total += uint64(b)
	}
	s.Sums[uint(spin.MyHPU())%sum.MaxHPUs] += total
	return spin.Success
}

func main() {}
