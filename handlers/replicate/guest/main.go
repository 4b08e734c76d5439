// Servers that keep copies: each writes a packet and passes it on, the last
// ones tell the client (SC'22, "Building Blocks for Network-Accelerated
// Distributed File Systems").
//
//spin:library replicate 1.0
//spin:needs spaces=entry entry_options=op_put
package main

import (
	"math/bits"

	"github.com/spinsim/spinsim/handlers/replicate"
	"github.com/spinsim/spinsim/spin"
)

// open refuses a write that does not fit into the memory of the server: nothing
// of it is written.
//
//go:wasmexport open
func open(h *spin.Header, s *replicate.State) spin.Code {
	if h.MLength == h.Length {
		return spin.ProcessData
	}
	spin.FAdd(&s.Counts.Refused, 1)
	if answer(s, replicate.Ticket(h.HdrData), replicate.Refused).Failed() {
		return spin.Fail
	}
	return spin.Drop
}

// store writes a packet and passes it on. Packets of a block are written and
// passed on in the order of arrival, so that all servers end with the same
// bytes.
//
//go:wasmexport store
func store(p *spin.Payload, s *replicate.State) spin.Code {
	l := lockOf(s, p.HostOffset)
	turn := spin.FAdd(&l.Next, 1) // first of all: handlers begin in the order in which packets come
	waits := uint64(0)
	for l.Serving != turn {
		waits++
		spin.Yield()
	}
	if waits != 0 {
		spin.FAdd(&s.Counts.Waits, waits) // handlers of other blocks count at the same time
	}
	status := uint64(replicate.OK)
	switch {
	case p.HostOffset%replicate.Block+uint64(p.Length) > replicate.Block:
		spin.FAdd(&s.Counts.Refused, 1)
		status = replicate.Refused
	case spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()).Failed():
		spin.FAdd(&s.Counts.Failed, 1)
		status = replicate.Failed
	}
	last := false
	if status == replicate.OK {
		if last = pass(p, s, &status); status == replicate.OK {
			spin.FAdd(&s.Counts.Stored, 1)
		}
	}
	spin.FAdd(&l.Serving, 1) // later reads see the new data
	sent := spin.OK
	switch {
	case status != replicate.OK:
		sent = answer(s, replicate.Ticket(p.HdrData), status)
	case last:
		sent = settle(s, replicate.Ticket(p.HdrData))
	}
	if sent.Failed() || status == replicate.Failed {
		return spin.Fail
	}
	return spin.Success
}

// pass puts a packet to the next servers that are alive, and reports whether there are none.
func pass(p *spin.Payload, s *replicate.State, status *uint64) (last bool) {
	live := uint32(p.MatchBits>>replicate.LiveShift) & (1<<replicate.MaxServers - 1)
	rank, n := replicate.Next(replicate.Rank(live, s.Index), uint32(bits.OnesCount32(live)), s.Tree != 0)
	op := spin.Op{Local: p.Base, Length: uint64(p.Length), PTIndex: s.PT, RemoteOffset: p.HostOffset, HdrData: p.HdrData}
	op.MatchBits = p.MatchBits&^replicate.KindMask | replicate.PassBits
	for i := range n {
		to := &s.Servers[replicate.Of(live, rank+i)%replicate.MaxServers]
		op.TargetNID, op.TargetPID = to.NID, to.PID
		if spin.PutFromDevice(&op).Failed() {
			*status = replicate.Failed
		}
		spin.FAdd(&s.Counts.Passed, 1)
	}
	return n == 0
}

// settle counts an arrived packet of a write. After the last one it answers the
// client.
func settle(s *replicate.State, t replicate.Ticket) spin.Result {
	if t.Slot() >= s.Slots {
		return spin.Invalid
	}
	slot := spin.At[uint64](spin.After(s) + spin.Ptr(t.Slot()*replicate.SlotSize))
	if uint32(spin.FAdd(slot, 1)+1) != t.Packets() {
		return spin.OK
	}
	*slot = 0
	spin.FAdd(&s.Counts.Settled, 1)
	return answer(s, t, replicate.OK)
}

// answer answers a client's write.
func answer(s *replicate.State, t replicate.Ticket, status uint64) spin.Result {
	op := spin.Op{TargetNID: t.NID(), TargetPID: t.PID(), PTIndex: s.ReplyPT, MatchBits: replicate.ReplyBits | uint64(t.Slot()), HdrData: status}
	return spin.PutFromDevice(&op)
}

// lockOf returns the lock of a block: locks are behind the slots.
func lockOf(s *replicate.State, offset uint64) *replicate.Lock {
	i := uint32(offset/replicate.Block) % replicate.Locks
	return spin.At[replicate.Lock](spin.After(s) + spin.Ptr(s.Slots*replicate.SlotSize+i*replicate.LockSize))
}

func main() {}
