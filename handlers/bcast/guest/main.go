// Forwards a broadcast down a binomial tree of ranks from the network interface (sPIN'17 §4.4.3).
//
//spin:library bcast 1.0
//spin:needs spaces=entry entry_options=op_put
package main

import (
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/spin"
)

// streamPayload puts a packet to every child from the device and deposits it meanwhile.
//
//go:wasmexport stream_payload
func streamPayload(p *spin.Payload, s *bcast.State) spin.Code {
	// Nobody waits for the deposit: the record that tells the host of the
	// packet follows the data on the same bus.
	code := spin.Success
	if spin.DMAToHostNB(spin.MEHostMem, p.HostOffset, p.Bytes()) < 0 {
		code = spin.Fail
	}
	op := spin.Op{
		Local: p.Base, Length: uint64(p.Length), RemoteOffset: p.HostOffset, HdrData: p.HdrData,
		PTIndex: s.PT, MatchBits: s.MatchBits, MD: s.MD,
	}
	tree := *s // in registers: no action can change it
	for d := tree.FirstDistance(); d > 0; d >>= 1 {
		if rank, found := tree.Child(d); found {
			op.TargetNID = rank
			if spin.PutFromDevice(&op).Failed() {
				code = spin.Fail
			}
		}
	}
	return code
}

// streamCompletion passes a message without payload on.
//
//go:wasmexport stream_completion
func streamCompletion(c *spin.Completion, s *bcast.State) spin.Code {
	if c.MLength > 0 {
		return spin.Success
	}
	return forward(c, s)
}

// storePayload passes the packet of a message that has only one on, and
// deposits those of longer ones.
//
//go:wasmexport store_payload
func storePayload(p *spin.Payload, s *bcast.State) spin.Code {
	if p.MLength <= uint64(s.MaxPayload) {
		return streamPayload(p, s)
	}
	if spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()).Failed() {
		return spin.Fail
	}
	return spin.Success
}

// storeCompletion puts the deposited message to every child, or one without payload.
//
//go:wasmexport store_completion
func storeCompletion(c *spin.Completion, s *bcast.State) spin.Code {
	if 0 < c.MLength && c.MLength <= uint64(s.MaxPayload) {
		return spin.Success
	}
	if c.Failed != 0 || c.DroppedBytes > 0 {
		return spin.Fail // host memory does not hold the whole message
	}
	return forward(c, s)
}

// forward puts the whole message to every child, from where it was deposited if it has a payload.
func forward(c *spin.Completion, s *bcast.State) spin.Code {
	op := spin.Op{
		Offset: c.Offset, Length: c.MLength, RemoteOffset: c.Offset, HdrData: c.HdrData,
		PTIndex: s.PT, MatchBits: s.MatchBits, MD: s.MD,
	}
	code := spin.Success
	tree := *s // in registers: no action can change it
	for d := tree.FirstDistance(); d > 0; d >>= 1 {
		if rank, found := tree.Child(d); found {
			op.TargetNID = rank
			var r spin.Result
			if c.MLength == 0 {
				r = spin.PutFromDevice(&op)
			} else {
				r = spin.PutFromHost(&op)
			}
			if r.Failed() {
				code = spin.Fail
			}
		}
	}
	return code
}

func main() {}
