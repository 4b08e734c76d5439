// A rate law in 30 lines: additive increase, multiplicative decrease.
//
//spin:library aimd 1.0
package main

import (
	"structs"

	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o aimd.wasm .

// state is what the law remembers of the packets to a node.
type state struct {
	_     structs.HostLayout
	Grown uint64 // bytes acknowledged since the window grew
	Calm  uint64 // no second cut before so many bytes are acknowledged
}

// law adds a packet to the window for every window that is acknowledged, and
// halves it for a mark or a loss, once a window.
//
//go:wasmexport law
func law(f *spin.Flow, s *state) spin.Code {
	switch {
	case f.Event == spin.FlowBegins:
		f.Window = f.Base * f.MTU / f.MTUTime // what fits on the way
	case f.Event == spin.FlowAcked && f.Marked == 0:
		s.Calm -= min(s.Calm, f.Bytes)
		if s.Grown += f.Bytes; s.Grown >= f.Window {
			s.Grown, f.Window = 0, f.Window+f.MTU
		}
	case f.Event <= spin.FlowLost && s.Calm == 0:
		f.Window = max(f.Window/2, f.MTU)
		s.Calm = f.InFlight
	}
	return spin.Success
}

func main() {}
