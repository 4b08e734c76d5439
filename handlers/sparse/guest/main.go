// Aggregators of sparse allreduces, in units of switches (Flare) or in NICs.
//
//spin:library sparse 1.0
//spin:needs memory=0 spaces=entry entry_options=op_put
package main

import (
	"math"

	"github.com/spinsim/spinsim/handlers/sparse"
	"github.com/spinsim/spinsim/spin"
)

// aggregator handles a packet: pairs of a child, or of the result.
//
//go:wasmexport aggregator
func aggregator(p *spin.Payload, s *sparse.State) spin.Code {
	switch p.MatchBits & (1<<sparse.PlaceShift - 1) {
	case sparse.KindPairs, sparse.KindPairs | sparse.Last:
		return pairs(s, p)
	case sparse.KindResult, sparse.KindResult | sparse.Last:
		spin.FAdd(&s.Counts.Results, 1)
		return down(s, &spin.Op{Local: p.Base, Length: uint64(p.Length), HdrData: p.HdrData, MatchBits: p.MatchBits})
	case sparse.KindTrouble:
		return trouble(s)
	case sparse.KindMore:
		return drain(s, slot(s, uint32(p.HdrData)))
	}
	return strange(s)
}

func strange(s *sparse.State) spin.Code {
	spin.FAdd(&s.Counts.Strange, 1)
	return spin.Success
}

func child(s *sparse.State, i uint32) *sparse.Child {
	return spin.At[sparse.Child](spin.After(s) + spin.Ptr(i*sparse.ChildBytes))
}

func slot(s *sparse.State, run uint32) *sparse.Slot {
	first := spin.After(s) + spin.Ptr(s.Children*sparse.ChildBytes)
	return spin.At[sparse.Slot](first + spin.Ptr(run%(2*s.Window)*s.SlotBytes()))
}

func table(s *sparse.State, l *sparse.Slot) []sparse.Entry {
	return spin.View[sparse.Entry](spin.After(l).Bytes(sparse.PairBytes * s.Table))
}

// outgoing is the packet that is next to be sent.
func outgoing(s *sparse.State, l *sparse.Slot) spin.Ptr {
	return spin.After(l) + spin.Ptr(sparse.PairBytes*s.Table)
}

func kept(s *sparse.State, l *sparse.Slot, c *sparse.Child, packet uint32) *sparse.Kept {
	return spin.At[sparse.Kept](outgoing(s, l) + spin.Ptr(s.Packet+c.First+packet*(sparse.KeptHead+c.Bytes)))
}

// lock takes a slot if nobody has it. Whoever has it adds what has come.
func lock(l *sparse.Slot) bool { return spin.CAS32(&l.Busy, 0, 1) }

// pairs takes a packet of a child. If it is its turn and nobody adds, it is added
// at once, else kept. Two packets of a child for one place are never under way:
// it sends a block when it has the result of the block a window before, and slots
// are twice as many.
func pairs(s *sparse.State, p *spin.Payload) spin.Code {
	i, packet := uint32(p.MatchBits>>sparse.PlaceShift)&sparse.PlaceMask, uint32(p.MatchBits>>sparse.PacketShift)&sparse.PacketMask
	if i >= s.Children {
		return strange(s)
	}
	c := child(s, i)
	if packet >= c.Packets || p.Length > c.Bytes || p.Length%sparse.PairBytes != 0 || p.Offset != 0 {
		return strange(s)
	}
	head := sparse.Kept{
		Last: uint32(p.MatchBits) & sparse.Last, Bytes: p.Length,
		Block: sparse.Block{Run: uint32(p.HdrData), Count: uint32(p.HdrData >> 32), Index: uint32(p.MatchBits >> sparse.IndexShift)},
	}
	spin.FAdd(&s.Counts.Packets, 1)
	l := slot(s, head.Block.Run)
	mine := lock(l)
	if mine && i == l.Next && packet == l.Packet {
		code := absorb(s, l, &head, p.Base)
		return min(code, drain(s, l))
	}
	spin.FAdd(&s.Counts.Early, 1)
	k := kept(s, l, c, packet)
	*k = head
	copy(spin.After(k).Bytes(p.Length), p.Bytes())
	spin.Apply32(spin.Or32, &k.Came, 1)
	if mine || lock(l) {
		return drain(s, l)
	}
	return spin.Success
}

// absorb adds the packet whose turn it is.
func absorb(s *sparse.State, l *sparse.Slot, head *sparse.Kept, from spin.Ptr) spin.Code {
	if head.Block.Run/(2*s.Window) != l.Round {
		return strange(s)
	}
	if l.Next == 0 && l.Packet == 0 {
		l.Block = head.Block
	} else if l.Block != head.Block {
		return trouble(s)
	}
	code := add(s, l, spin.View[sparse.Pair](from.Bytes(head.Bytes)))
	l.Packet++
	if head.Last != 0 {
		l.Next, l.Packet = l.Next+1, 0
	}
	return code
}

// add adds pairs to the table. A pair that finds another index in its place is
// sent on at once: whoever has the index in its table adds it there.
func add(s *sparse.State, l *sparse.Slot, list []sparse.Pair) (code spin.Code) {
	entries, first := table(s, l), l.Block.Index*s.Span
	for _, p := range list {
		if p.Index-first >= s.Span {
			if p.Index != sparse.None {
				code = min(code, strange(s))
			}
			continue
		}
		switch e := &entries[p.Index&(s.Table-1)]; e.Key {
		case p.Index + 1:
			e.Value = one(e.Value + p.Value)
		case 0:
			e.Key, e.Value = p.Index+1, one(p.Value)
		default:
			spin.FAdd(&s.Counts.Spilled, 1)
			code = min(code, send(s, l, p))
		}
	}
	return code
}

// one makes all NaNs the same one, so that no engine gives other bits.
func one(x float32) float32 {
	const nan = 0x7fc00000
	if x != x {
		return math.Float32frombits(nan)
	}
	return x
}

// drain adds the kept packets whose turn it is, and gives the slot back. A packet
// that has come while it did so finds the slot taken, so it looks again. Looking
// suspends until the time of the handler: the slot is taken as long as adding
// takes. After sparse.Turn packets' bytes another handler goes on, so that a
// handler's budget suffices for any number of children.
func drain(s *sparse.State, l *sparse.Slot) (code spin.Code) {
	added := uint32(0)
	for {
		for l.Next < s.Children {
			if added >= sparse.Turn*s.Packet && more(s, l) {
				return code
			}
			k := next(s, l)
			if k == nil || spin.Apply32(spin.Swap32, &k.Came, 0) == 0 {
				break
			}
			added += k.Bytes
			code = min(code, absorb(s, l, k, spin.After(k)))
		}
		if l.Next == s.Children {
			code = min(code, finish(s, l))
		}
		k := next(s, l)
		spin.Apply32(spin.Swap32, &l.Busy, 0)
		if k == nil || spin.Apply32(spin.Or32, &k.Came, 0) == 0 || !lock(l) {
			return code
		}
	}
}

// more gives a slot to another handler, which goes on. Without room for a message
// to self, this one does.
func more(s *sparse.State, l *sparse.Slot) bool {
	return !spin.ToSelf(&spin.Op{
		Local: spin.AddrOf(&l.Block), Length: 4, PTIndex: s.PT, MatchBits: sparse.KindMore, HdrData: uint64(l.Block.Run),
	}).Failed()
}

// next is where the packet whose turn it is would be kept. A child that has sent
// more packets than it may has none.
func next(s *sparse.State, l *sparse.Slot) *sparse.Kept {
	c := child(s, l.Next)
	if l.Packet >= c.Packets {
		return nil
	}
	return kept(s, l, c, l.Packet)
}

// finish passes on what of a block's sum is not zero. The slot is then for the
// block that is two windows later.
func finish(s *sparse.State, l *sparse.Slot) (code spin.Code) {
	spin.FAdd(&s.Counts.Blocks, 1)
	entries := table(s, l)
	for i := range entries {
		e := &entries[i]
		if e.Key == 0 {
			continue
		}
		if e.Value != 0 {
			code = min(code, send(s, l, sparse.Pair{Index: e.Key - 1, Value: e.Value}))
		}
		e.Key = 0
	}
	if l.Filled == 0 {
		code = min(code, send(s, l, sparse.Pair{Index: sparse.None}))
	}
	code = min(code, flush(s, l, sparse.Last))
	l.Round++
	l.Next, l.Sent = 0, 0
	return code
}

// send puts a pair into the outgoing packet. A full one goes when there is
// another pair, so that the last one is never empty.
func send(s *sparse.State, l *sparse.Slot, p sparse.Pair) (code spin.Code) {
	if l.Filled == s.Packet {
		code = flush(s, l, 0)
	}
	*spin.At[sparse.Pair](outgoing(s, l) + spin.Ptr(l.Filled)) = p
	l.Filled += sparse.PairBytes
	return code
}

// flush sends the outgoing packet, to the parent or, at the root, down.
func flush(s *sparse.State, l *sparse.Slot, last uint64) spin.Code {
	op := &spin.Op{
		Local: outgoing(s, l), Length: uint64(l.Filled), HdrData: uint64(l.Block.Run) | uint64(l.Block.Count)<<32,
		MatchBits: last | uint64(l.Sent)<<sparse.PacketShift | uint64(l.Block.Index)<<sparse.IndexShift,
	}
	l.Sent++
	l.Filled = 0
	if s.Root != 0 {
		op.MatchBits |= sparse.KindResult
		return down(s, op)
	}
	op.MatchBits |= sparse.KindPairs | uint64(s.Place)<<sparse.PlaceShift
	return up(s, op)
}

func up(s *sparse.State, op *spin.Op) spin.Code {
	op.TargetNID, op.TargetPID, op.PTIndex = s.ParentNID, s.ParentPID, s.PT
	if spin.PutFromDevice(op).Failed() {
		return spin.Fail
	}
	return spin.Success
}

// down sends a packet of the result to every child, to its place in the window
// of a process.
func down(s *sparse.State, op *spin.Op) spin.Code {
	packet := op.MatchBits >> sparse.PacketShift & sparse.PacketMask
	block := uint64(uint32(op.HdrData) % s.Window)
	op.RemoteOffset = (block*uint64(s.Results) + packet) * uint64(s.Packet)
	return all(s, op)
}

func all(s *sparse.State, op *spin.Op) spin.Code {
	code := spin.Success
	op.PTIndex = s.PT
	for i := range s.Children {
		c := child(s, i)
		op.TargetNID, op.TargetPID = c.NID, c.PID
		if spin.PutFromDevice(op).Failed() {
			code = spin.Fail
		}
	}
	return code
}

// trouble tells all neighbours once that the group is broken.
func trouble(s *sparse.State) spin.Code {
	if !spin.CAS32(&s.Broken, 0, sparse.Differs) {
		return spin.Success
	}
	op := &spin.Op{Local: spin.AddrOf(&s.Broken), Length: 4, MatchBits: sparse.KindTrouble}
	code := all(s, op)
	if s.Root == 0 {
		code = min(code, up(s, op))
	}
	return code
}

func main() {}
