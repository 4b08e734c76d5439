package main

import (
	"math/bits"

	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/spin"
)

// The bytes of a failed server are the exclusive or of the others' bytes. A
// chain collects them: the first server sends its bytes to the next one, whose
// handlers add their own to each packet and pass it on; the last one sends the
// sum to its receiver. The client sends one message, and gets the bytes once.

// gather begins a chain: the network interface sends the server's bytes of the
// range.
//
//go:wasmexport gather
func gather(h *spin.Header, s *raid5.State) spin.Code {
	if h.UserHdrLen < raid5.RangeSize {
		return spin.Fail
	}
	r := spin.At[raid5.Range](h.UserHdr)
	op := spin.Op{Space: spin.MEHostMem, Offset: r.Offset, Length: r.Length, RemoteOffset: r.Offset, HdrData: h.HdrData}
	next(s, &op, h.MatchBits)
	for {
		r := spin.PutFromHost(&op)
		if r != spin.NoSpace {
			if r.Failed() {
				return spin.Fail
			}
			return spin.Drop
		}
		spin.Yield()
	}
}

// fold adds the server's own bytes to a packet of a chain, and passes it on.
//
//go:wasmexport fold
func fold(p *spin.Payload, s *raid5.State) spin.Code {
	if p.Length > s.BufferSize {
		return spin.Fail
	}
	i, buffer := acquire(s, p.Length)
	r := spin.DMAFromHost(spin.MEHostMem, p.HostOffset, buffer)
	if !r.Failed() {
		xor(buffer, p.Bytes())
		op := spin.Op{Local: spin.Addr(buffer), Length: uint64(p.Length), RemoteOffset: p.HostOffset, HdrData: p.HdrData}
		next(s, &op, p.MatchBits)
		r = spin.PutFromDevice(&op)
	}
	spin.Release(&s.Free, i)
	if r.Failed() {
		return spin.Fail
	}
	spin.FAdd(&s.Counts.Folded, 1)
	return spin.Success
}

// next addresses a message to the next server of a chain, or after the last one
// to the receiver.
func next(s *raid5.State, op *spin.Op, match uint64) {
	chain := uint32(match>>raid5.ChainShift) &^ (1 << s.Index)
	last := uint32(match>>raid5.LastShift) & 0xff
	to := last
	switch {
	case chain != 0:
		to = uint32(bits.TrailingZeros32(chain))
		op.MatchBits = uint64(last)<<raid5.LastShift | uint64(chain)<<raid5.ChainShift | raid5.FoldBits
	case last == raid5.ToClient:
		d := raid5.Destination(op.HdrData)
		op.TargetNID, op.TargetPID, op.PTIndex, op.MatchBits, op.RemoteOffset = d.NID(), d.PID(), s.ReplyPT, raid5.SumBits, d.Place(op.RemoteOffset)
		return
	default:
		op.MatchBits = raid5.FillBits
	}
	server := &s.Servers[to%raid5.MaxServers]
	op.TargetNID, op.TargetPID, op.PTIndex = server.NID, server.PID, s.PT
}

// fill writes a packet of the server's lost bytes. After the last one it tells
// the client that rebuilds.
//
//go:wasmexport fill
func fill(p *spin.Payload, s *raid5.State) spin.Code {
	failed := spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()).Failed()
	if failed {
		spin.FAdd(&s.Counts.Failed, 1)
	} else {
		spin.FAdd(&s.Counts.Filled, 1)
	}
	if settle(s, raid5.Ticket(p.HdrData), failed).Failed() || failed {
		return spin.Fail
	}
	return spin.Success
}
