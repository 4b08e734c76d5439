// A filter: packets whose first four bytes are the wanted number are deposited
// in host memory and counted; all others are counted and dropped.
//
//spin:library filter 1.0
//spin:needs spaces=entry
package main

import (
	"encoding/binary"
	"structs"

	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o first-handler.wasm .

// State lies in HPU memory. The host sets Wanted, the handlers count.
type State struct {
	_       structs.HostLayout
	Passed  uint64 `spin:"unit=packets"` // deposited
	Dropped uint64 `spin:"unit=packets"`
	Wanted  uint32 // first four bytes of packets that pass
	_       uint32
}

// payload looks at the first four bytes of a packet.
//
//go:wasmexport payload
func payload(p *spin.Payload, s *State) spin.Code {
	b := p.Bytes()
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != s.Wanted {
		spin.FAdd(&s.Dropped, 1)
		return spin.Drop
	}
	spin.FAdd(&s.Passed, 1)
	if spin.DMAToHost(spin.MEHostMem, p.HostOffset, b).Failed() {
		return spin.Fail
	}
	return spin.Success
}

func main() {}
