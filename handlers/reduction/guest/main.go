// Aggregators of an allreduce, in units of switches (Flare, SHArP) or in NICs.
//
//spin:library reduction 1.0
//spin:needs memory=0 spaces=entry entry_options=op_put
package main

import (
	"github.com/spinsim/spinsim/handlers/allreduce/combine"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/spin"
)

// aggregator handles a packet: a block of a child's vector, or of the result.
//
//go:wasmexport aggregator
func aggregator(p *spin.Payload, s *reduction.State) spin.Code {
	switch p.MatchBits & (1<<reduction.PlaceShift - 1) {
	case reduction.KindVector:
		return vector[everywhere](s, p)
	case reduction.KindResult:
		spin.FAdd(&s.Counts.Results, 1)
		op := spin.Op{Local: p.Base, Length: uint64(p.Length), HdrData: p.HdrData}
		return down(s, op, uint32(p.MatchBits>>reduction.IndexShift))
	case reduction.KindTrouble:
		return trouble(s)
	}
	return rooted(s, p)
}

// rooted handles a packet of a reduce, a broadcast or a barrier.
func rooted(s *reduction.State, p *spin.Payload) spin.Code {
	switch p.MatchBits & (1<<reduction.PlaceShift - 1) {
	case reduction.Rooted | reduction.KindVector:
		return vector[oneRoot](s, p)
	case reduction.Rooted | reduction.KindResult:
		return result(s, p)
	}
	return strange(s)
}

// way is how vectors are combined, and who gets what.
type way interface {
	// index returns where a piece of a message goes.
	index(p *spin.Payload, piece uint32) uint32
	// absorb combines the vector whose turn it is with the sum.
	absorb(s *reduction.State, l *reduction.Slot, b *reduction.Block, from spin.Ptr) spin.Code
	// finish passes the sum of a block on. The slot is then for the block that is
	// two windows later.
	finish(s *reduction.State, l *reduction.Slot) spin.Code
}

// everywhere is an allreduce.
type everywhere struct{}

func strange(s *reduction.State) spin.Code {
	spin.FAdd(&s.Counts.Strange, 1)
	return spin.Success
}

func child(s *reduction.State, i uint32) *reduction.Child {
	return spin.At[reduction.Child](spin.After(s) + spin.Ptr(i*reduction.ChildBytes))
}

func slot(s *reduction.State, run uint32) *reduction.Slot {
	first := spin.After(s) + spin.Ptr(s.Children*reduction.ChildBytes)
	return spin.At[reduction.Slot](first + spin.Ptr(run%(2*s.Window)*s.SlotBytes()))
}

// sum returns where a slot has the sum, and kept where it keeps the vector of a
// child that came before its turn.
func sum(l *reduction.Slot) spin.Ptr { return spin.After(l) }

func kept(s *reduction.State, l *reduction.Slot, i uint32) *reduction.Block {
	return spin.At[reduction.Block](spin.After(l) + spin.Ptr(s.Block+i*(reduction.BlockHead+s.Block)))
}

// lock takes a slot if nobody has it. Whoever has it combines what has come.
func lock(l *reduction.Slot) bool { return spin.CAS32(&l.Busy, 0, 1) }

// vector takes a child's part of a block. If it is the child's turn and nobody
// combines, it is combined at once, else kept. Two packets of a child in one
// place are never under way: it sends a block when it has the result of the
// block a window before, and slots are twice as many.
func vector[W way](s *reduction.State, p *spin.Payload) spin.Code {
	piece := uint32(p.Offset / uint64(s.Block))
	i := uint32(p.MatchBits>>reduction.PlaceShift) & reduction.PlaceMask
	if i >= s.Children || p.Length > s.Block {
		return strange(s)
	}
	var w W
	b := reduction.Block{
		Run: uint32(p.HdrData) + piece, Sign: uint32(p.HdrData >> 32), Bytes: p.Length, Index: w.index(p, piece),
	}
	spin.FAdd(&s.Counts.Vectors, 1)
	l := slot(s, b.Run)
	mine := lock(l)
	if mine && i == l.Next {
		code := w.absorb(s, l, &b, p.Base)
		return min(code, drain[W](s, l)) // Fail is below Success
	}
	spin.FAdd(&s.Counts.Early, 1)
	k := kept(s, l, i)
	*k = b
	copy(spin.After(k).Bytes(p.Length), p.Bytes())
	spin.Apply32(spin.Or32, &l.Came[i/32], 1<<(i%32))
	if mine || lock(l) {
		return drain[W](s, l)
	}
	return spin.Success
}

func (everywhere) index(p *spin.Payload, piece uint32) uint32 {
	return uint32(p.MatchBits>>reduction.IndexShift) + piece
}

func (everywhere) absorb(s *reduction.State, l *reduction.Slot, b *reduction.Block, from spin.Ptr) spin.Code {
	if b.Run/(2*s.Window) != l.Round {
		return strange(s)
	}
	if l.Next == 0 {
		l.Sum = *b
		copy(sum(l).Bytes(b.Bytes), from.Bytes(b.Bytes))
	} else if l.Sum != *b {
		return trouble(s)
	} else {
		combine.Vectors(sum(l).Bytes(b.Bytes), from.Bytes(b.Bytes), uint16(b.Sign>>24&0xf), uint16(b.Sign>>28))
	}
	l.Next++
	return spin.Success
}

// drain combines the kept vectors whose turn it is, and gives the slot back. A
// vector that has come while it did so finds the slot taken, so it looks again.
// Looking suspends until the time of the handler: the slot is taken as long as
// combining takes.
func drain[W way](s *reduction.State, l *reduction.Slot) (code spin.Code) {
	var w W
	for {
		for l.Next < s.Children && take(l, l.Next) {
			k := kept(s, l, l.Next)
			code = min(code, w.absorb(s, l, k, spin.After(k)))
		}
		if l.Next == s.Children {
			code = min(code, w.finish(s, l))
		}
		next := l.Next
		spin.Apply32(spin.Swap32, &l.Busy, 0)
		if !came(l, next) || !lock(l) {
			return code
		}
	}
}

// came reports whether a child's vector is kept, and take does so once.
func came(l *reduction.Slot, i uint32) bool {
	return spin.Apply32(spin.Or32, &l.Came[i/32], 0)>>(i%32)&1 != 0
}

func take(l *reduction.Slot, i uint32) bool {
	bit := uint32(1) << (i % 32)
	return spin.Apply32(spin.And32, &l.Came[i/32], ^bit)&bit != 0
}

func (everywhere) finish(s *reduction.State, l *reduction.Slot) spin.Code {
	spin.FAdd(&s.Counts.Blocks, 1)
	op := spin.Op{Local: sum(l), Length: uint64(l.Sum.Bytes), HdrData: uint64(l.Sum.Run) | uint64(l.Sum.Sign)<<32}
	index := l.Sum.Index
	l.Round++
	l.Next = 0
	if s.Root != 0 {
		return down(s, op, index)
	}
	op.MatchBits = reduction.KindVector | uint64(s.Place)<<reduction.PlaceShift | uint64(index)<<reduction.IndexShift
	return up(s, &op)
}

func up(s *reduction.State, op *spin.Op) spin.Code {
	op.TargetNID, op.TargetPID, op.PTIndex = s.ParentNID, s.ParentPID, s.PT
	if spin.PutFromDevice(op).Failed() {
		return spin.Fail
	}
	return spin.Success
}

// down sends a block of the result to every child.
func down(s *reduction.State, op spin.Op, index uint32) spin.Code {
	code := spin.Success
	bits := reduction.KindResult | uint64(index)<<reduction.IndexShift
	place := uint64(uint32(op.HdrData)%s.Window) << reduction.PlaceShift
	op.PTIndex = s.PT
	for i := range s.Children {
		c := child(s, i)
		op.TargetNID, op.TargetPID, op.MatchBits, op.RemoteOffset = c.NID, c.PID, bits, 0
		if c.Inner == 0 {
			op.MatchBits, op.RemoteOffset = bits|place, uint64(index)*uint64(s.Block)
		}
		if spin.PutFromDevice(&op).Failed() {
			code = spin.Fail
		}
	}
	return code
}

// trouble tells all neighbours once that the group is broken.
func trouble(s *reduction.State) spin.Code {
	if !spin.CAS32(&s.Broken, 0, reduction.Differs) {
		return spin.Success
	}
	op := spin.Op{Local: spin.AddrOf(&s.Broken), Length: 4, PTIndex: s.PT, MatchBits: reduction.KindTrouble}
	code := spin.Success
	for i := range s.Children {
		c := child(s, i)
		op.TargetNID, op.TargetPID = c.NID, c.PID
		if spin.PutFromDevice(&op).Failed() {
			code = spin.Fail
		}
	}
	if s.Root == 0 {
		if up(s, &op) != spin.Success {
			code = spin.Fail
		}
	}
	return code
}

func main() {}
