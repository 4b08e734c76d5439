// Answers messages from the network interface (sPIN'17 §4.4.1): the whole when
// it has been deposited, or packet by packet.
//
//spin:library pingpong 1.0
//spin:needs spaces=entry entry_options=op_put
package main

import (
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/spin"
)

// code is the return code of a handler whose last action had result r.
func code(r spin.Result) spin.Code {
	if r.Failed() {
		return spin.Fail
	}
	return spin.Success
}

// answer sends a packet back at the given offset.
func answer(p *spin.Payload, s *pingpong.State, offset uint64) spin.Code {
	return code(spin.PutFromDevice(&spin.Op{
		Local: p.Base, Length: uint64(p.Length),
		TargetNID: p.SourceNID, TargetPID: p.SourcePID,
		PTIndex: s.PT, MatchBits: s.MatchBits, RemoteOffset: offset, HdrData: p.HdrData,
	}))
}

// streamPayload answers a packet as it arrives, by a put of its own to the
// packet's place in the message.
//
//go:wasmexport stream_payload
func streamPayload(p *spin.Payload, s *pingpong.State) spin.Code {
	return answer(p, s, p.Offset)
}

// streamCompletion answers a message without payload.
//
//go:wasmexport stream_completion
func streamCompletion(c *spin.Completion, s *pingpong.State) spin.Code {
	if c.MLength > 0 {
		return spin.Success
	}
	return answerWhole(c, s)
}

// storePayload answers the packet of a message with only one, and deposits the
// packets of longer messages.
//
//go:wasmexport store_payload
func storePayload(p *spin.Payload, s *pingpong.State) spin.Code {
	if p.MLength <= uint64(s.MaxPayload) {
		return answer(p, s, 0)
	}
	return code(spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()))
}

// storeCompletion sends the deposited message back, or one without payload.
//
//go:wasmexport store_completion
func storeCompletion(c *spin.Completion, s *pingpong.State) spin.Code {
	if 0 < c.MLength && c.MLength <= uint64(s.MaxPayload) {
		return spin.Success
	}
	if c.Failed != 0 || c.DroppedBytes > 0 {
		return spin.Fail // host memory does not hold the whole message
	}
	return answerWhole(c, s)
}

// answerWhole sends the whole message back from where it was deposited, if it has a payload.
func answerWhole(c *spin.Completion, s *pingpong.State) spin.Code {
	op := spin.Op{
		Offset: c.Offset, Length: c.MLength,
		TargetNID: c.SourceNID, TargetPID: c.SourcePID,
		PTIndex: s.PT, MatchBits: s.MatchBits, HdrData: c.HdrData,
	}
	if c.MLength == 0 {
		return code(spin.PutFromDevice(&op))
	}
	return code(spin.PutFromHost(&op))
}

func main() {}
