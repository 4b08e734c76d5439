// Multiplies an array of double-precision complex numbers into one in the
// target's memory, element by element (sPIN'17 §4.4.2).
//
//spin:library accumulate 1.0
//spin:needs memory=min(hpus*contexts,64)*mtu spaces=entry entry_options=op_put
package main

import (
	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/spin"
)

// payload reads the packet's part of the target array into a buffer, multiplies and writes it back.
//
//go:wasmexport payload
func payload(p *spin.Payload, s *accumulate.State) spin.Code {
	if p.Length%accumulate.ElementSize != 0 || p.Length > s.BufferSize {
		return spin.Fail
	}
	i := spin.Acquire(&s.Free)
	buffer := (spin.After(s) + spin.Ptr(i*s.BufferSize)).Bytes(p.Length)
	code := multiply(p, buffer)
	spin.Release(&s.Free, i)
	return code
}

// multiply multiplies the packet into its part of the target array by way of buffer.
func multiply(p *spin.Payload, buffer []byte) spin.Code {
	if spin.DMAFromHost(spin.MEHostMem, p.HostOffset, buffer).Failed() {
		return spin.Fail
	}
	factors := spin.View[complex128](p.Bytes())
	products := spin.View[complex128](buffer)[:len(factors)] // one check for all
	for i, f := range factors {
		products[i] *= f
	}
	if spin.DMAToHost(spin.MEHostMem, p.HostOffset, buffer).Failed() {
		return spin.Fail
	}
	return spin.Success
}

func main() {}
