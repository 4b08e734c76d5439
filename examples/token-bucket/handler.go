// A token bucket: packets leave host memory at an exact rate, in bursts that are
// no longer than the bucket is deep. The hdr_data of a message asks for so many.
//
//spin:library token-bucket 1.0
//spin:needs spaces=entry entry_options=op_put
package main

import (
	"structs"

	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../internal/build/cmd -o token-bucket.wasm .

// State lies in HPU memory.
type State struct {
	_          structs.HostLayout
	Period     uint64 `spin:"unit=ps min=1 default=1000000"` // from token to token
	Bytes      uint64 `spin:"unit=bytes default=mtu"`        // of a packet, for one token
	Depth      uint64 `spin:"unit=packets min=1 default=1"`  // most tokens in the bucket
	Target, PT uint32 // node of the packets, and its portal table entry
	Backlog    uint64 `spin:"unit=packets"` // that wait for tokens
	Tokens     uint64 `spin:"unit=packets"` // in the bucket; only ticks use it
	Sent       uint64 `spin:"unit=packets"`
	Timer      uint64 // 2 + its number; 0: it is not set
}

// header takes a request for packets, or a tick of the timer.
//
//go:wasmexport header
func header(h *spin.Header, s *State) spin.Code {
	if h.Type != spin.MsgSelf {
		spin.FAdd(&s.Backlog, h.HdrData)
	} else {
		s.Tokens = min(s.Tokens+spin.Expiries(), s.Depth) // also those of ticks that were missed
		for ; s.Tokens > 0 && s.Backlog > 0; s.Tokens, s.Sent = s.Tokens-1, s.Sent+1 {
			if spin.PutFromHost(&spin.Op{Length: s.Bytes, TargetNID: s.Target, PTIndex: s.PT, HdrData: s.Sent}).Failed() {
				break // the token stays for the next tick
			}
			spin.FAdd(&s.Backlog, ^uint64(0))
		}
		if s.Tokens == s.Depth && s.Backlog == 0 { // nothing to do until a packet takes a token
			spin.TimerCancel(spin.Result(s.Timer - 2))
			s.Timer = 0
		}
	}
	if s.Backlog == 0 || !spin.CAS(&s.Timer, 0, 1) {
		return spin.Drop
	}
	timer := spin.TimerAt(spin.Now()+s.Period, s.Period, &spin.Op{MatchBits: h.MatchBits})
	if s.Timer = uint64(timer) + 2; timer.Failed() {
		s.Timer = 0
		return spin.Fail
	}
	return spin.Drop
}

func main() {}
