// The handler of package sum.
package main

import (
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/spin"
)

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
