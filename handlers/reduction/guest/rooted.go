package main

import (
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/spin"
)

// oneRoot is a reduce or a broadcast. Every member sends each block, and gets each
// result, but in a broadcast the root alone has bytes to send, and in a reduce it
// alone gets some. Others send a token, and get an empty message.
type oneRoot struct{}

// index is a place in the result, in bytes. That of the root's vector counts.
func (oneRoot) index(p *spin.Payload, _ uint32) uint32 {
	return uint32(p.MatchBits>>reduction.IndexShift) + uint32(p.Offset)
}

// absorb notes which child is the root, or has it below.
func (oneRoot) absorb(s *reduction.State, l *reduction.Slot, b *reduction.Block, from spin.Ptr) spin.Code {
	if b.Run/(2*s.Window) != l.Round {
		return strange(s)
	}
	block, root := *b, b.Index&reduction.RootBit != 0
	if block.Index = l.Sum.Index; l.Next == 0 {
		block.Index, l.Root = 0, 0
	}
	if root {
		if l.Root != 0 {
			return trouble(s)
		}
		l.Root = l.Next + 1
	}
	var code spin.Code
	if reduces(b.Sign) {
		code = everywhere{}.absorb(s, l, &block, from)
	} else {
		code = hold(s, l, &block, b.Bytes, from, root)
	}
	if root && code == spin.Success {
		l.Sum.Index = b.Index &^ reduction.RootBit
	}
	return code
}

// hold keeps the bytes of a broadcast that are the root's.
func hold(s *reduction.State, l *reduction.Slot, block *reduction.Block, n uint32, from spin.Ptr, root bool) spin.Code {
	if block.Bytes = l.Sum.Bytes; l.Next == 0 {
		block.Bytes = 0
		l.Sum = *block
	} else if l.Sum != *block {
		return trouble(s)
	}
	if root {
		l.Sum.Bytes = n
		copy(sum(l).Bytes(n), from.Bytes(n))
	}
	l.Next++
	return spin.Success
}

func reduces(sign uint32) bool { return sign&reduction.Reduce != 0 }

func (oneRoot) finish(s *reduction.State, l *reduction.Slot) spin.Code {
	spin.FAdd(&s.Counts.Blocks, 1)
	op := spin.Op{Local: sum(l), Length: uint64(l.Sum.Bytes), HdrData: uint64(l.Sum.Run) | uint64(l.Sum.Sign)<<32}
	index := l.Sum.Index
	l.Round++
	l.Next = 0
	switch {
	case s.Root == 0:
		if l.Root != 0 {
			index |= reduction.RootBit
		} else if !reduces(l.Sum.Sign) {
			op.Length = reduction.Token
		}
		op.MatchBits = reduction.Rooted | reduction.KindVector | uint64(s.Place)<<reduction.PlaceShift | uint64(index)<<reduction.IndexShift
		return up(s, &op)
	case l.Root == 0:
		return trouble(s)
	}
	return share(s, l, &op, index)
}

// result takes a block from the parent. One of a broadcast whose root is below is
// here already, and the parent's is a token. The slot still has what it was: the
// block two windows later cannot begin before all members have this one.
func result(s *reduction.State, p *spin.Payload) spin.Code {
	spin.FAdd(&s.Counts.Results, 1)
	l := slot(s, uint32(p.HdrData))
	op := spin.Op{Local: p.Base, Length: uint64(p.Length), HdrData: p.HdrData}
	if l.Root != 0 && !reduces(uint32(p.HdrData>>32)) {
		op.Local, op.Length = sum(l), uint64(l.Sum.Bytes)
	}
	return share(s, l, &op, uint32(p.MatchBits>>reduction.IndexShift))
}

// share sends a block to every child: of a reduce the root's has the bytes, of a
// broadcast all others have.
func share(s *reduction.State, l *reduction.Slot, op *spin.Op, index uint32) spin.Code {
	code := spin.Success
	bits, length := reduction.KindResult|uint64(index)<<reduction.IndexShift, op.Length
	place := uint64(uint32(op.HdrData)%s.Window) << reduction.PlaceShift
	reduce := reduces(uint32(op.HdrData >> 32))
	op.PTIndex = s.PT
	for i := range s.Children {
		c := child(s, i)
		op.TargetNID, op.TargetPID, op.MatchBits, op.RemoteOffset = c.NID, c.PID, bits|reduction.Rooted, 0
		if op.Length = 0; c.Inner != 0 {
			op.Length = reduction.Token
		} else {
			op.MatchBits = bits | place
		}
		if (i+1 == l.Root) == reduce {
			op.Length = length
			if c.Inner == 0 {
				op.RemoteOffset = uint64(index)
			}
		}
		if spin.PutFromDevice(op).Failed() {
			code = spin.Fail
		}
	}
	return code
}
