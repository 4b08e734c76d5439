// The handlers of the first example: a filter. Packets whose first four bytes are the wanted number are deposited in host
// memory and counted; all others are counted and dropped.
package main

import (
	"encoding/binary"
	"structs"

	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../spin/build/cmd -o first-handler.wasm .

// State lies in HPU memory. The host sets Wanted, the handlers count.
type State struct {
	_       structs.HostLayout
	Passed  uint64 // packets
	Dropped uint64 // packets
	Wanted  uint32
	_       uint32
}

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
