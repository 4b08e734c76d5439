// Does what a rule of sPIN is about (sPIN'17 §2, §3.2, §7, B).
//
//spin:library rules 1.0
//spin:needs spaces=entry entry_options=op_put
//spin:needs handler=header user_header=16
package main

import (
	"github.com/spinsim/spinsim/handlers/rules"
	"github.com/spinsim/spinsim/spin"
)

// header returns the code that the host has chosen.
//
//go:wasmexport header
func header(_ *spin.Header, s *rules.State) spin.Code { return spin.Code(s.Header) }

// payload takes the action that the host has chosen.
//
//go:wasmexport payload
func payload(p *spin.Payload, s *rules.State) spin.Code {
	op := spin.Op{Length: s.Length, TargetNID: p.SourceNID, TargetPID: p.SourcePID, PTIndex: s.PT, MatchBits: s.MatchBits}
	var r spin.Result
	switch s.Action {
	case rules.Deposit:
		r = spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes())
	case rules.Device:
		op.Local = p.Base
		for n := s.Puts; n > 0 && r >= 0; n-- {
			r = spin.PutFromDevice(&op)
		}
	case rules.Host:
		for n := s.Puts; n > 0 && r >= 0; n-- {
			r = spin.PutFromHost(&op)
		}
	case rules.Add:
		var word uint64
		if word, r = spin.LoadHost(spin.MEHostMem, 0); r >= 0 {
			r = spin.StoreHost(spin.MEHostMem, 0, word+1)
		}
	case rules.Endless: // the generator never gets to 0
		for x := s.Length | 1; x != 0; {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
	}
	if r.Failed() {
		return spin.Fail
	}
	return spin.Success
}

// completion does nothing: that it runs is what counts.
//
//go:wasmexport completion
func completion(*spin.Completion, *rules.State) spin.Code { return spin.Success }

func main() {}
