package main

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// bench is the module of rank 0, the server of a board of four, whose host
// memory has its vector, the table and room for a result.
type bench struct {
	d *spintest.Device
	s *allreduce.State
	h spintest.Handlers[allreduce.State]
}

const (
	atVector = 0
	atResult = 8
	atTable  = 16
)

func newBench(t *testing.T) *bench {
	d := spintest.New(t, spintest.Config{MTU: 64, HostMem: 64, HandlerHostMem: 8})
	levels := allreduce.LevelsOf(allreduce.Boards, 4)
	sized := allreduce.State{Levels: levels, Block: 8}
	b := &bench{d: d, s: spintest.NewState[allreduce.State](d, 2*int(sized.SlotBytes())), h: spintest.Handlers[allreduce.State]{Payload: module}}
	b.s.Window, b.s.Block, b.s.Levels, b.s.PT = 1, 8, levels, 9
	binary.LittleEndian.PutUint64(d.Host[atVector:], 1)
	for i := range uint32(4) {
		binary.LittleEndian.PutUint32(d.Host[atTable+8*i:], i)
		binary.LittleEndian.PutUint32(d.Host[atTable+8*i+4:], 100+i)
	}
	return b
}

// begin is a call of the own host.
func (b *bench) begin(first uint32) {
	c := allreduce.Descriptor{
		Source: atVector, Result: atResult, Table: atTable, Bytes: 8, First: first, Ranks: 4, Algorithm: allreduce.Boards, Op: allreduce.Sum, Type: allreduce.Int64, Tag: 7 + first,
	}
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: spin.EncodeState(&c), MatchBits: allreduce.KindBegin})
}

// vector is one of client level+1.
func (b *bench) vector(run, level uint32, value uint64) {
	sign := allreduce.Sign(8, allreduce.Sum, allreduce.Int64)
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{
		Data: binary.LittleEndian.AppendUint64(nil, value), MatchBits: allreduce.KindVector | uint64(level)<<4, HdrData: uint64(run) | uint64(sign)<<32, SourceNID: 101 + level,
	})
}

// Vectors that come before the call, in any order, and copies of them, of this
// run and of one that is over, make the result that they would make in order,
// once; and it goes to all clients.
func TestEarlyAndTwice(t *testing.T) {
	b := newBench(t)
	b.vector(0, 2, 1000)
	b.vector(0, 2, 9)
	b.vector(0, 0, 10)
	require.EqualValues(t, 2, b.s.Counts.Early)
	require.EqualValues(t, 1, b.s.Counts.Duplicates)
	b.vector(1, 1, 30000) // of the next run
	b.begin(0)
	require.Empty(t, b.d.Puts())
	b.vector(0, 1, 100)
	require.Len(t, b.d.Puts(), 3)
	for i, p := range b.d.Puts() {
		require.EqualValues(t, 101+i, p.Op.TargetNID)
		require.EqualValues(t, 9, p.Op.PTIndex)
	}
	require.EqualValues(t, 1111, binary.LittleEndian.Uint64(b.d.Host[atResult:]))
	require.EqualValues(t, allreduce.OK|7<<32, binary.LittleEndian.Uint64(b.d.HandlerHost))
	b.vector(0, 1, 100)
	require.EqualValues(t, 2, b.s.Counts.Duplicates)
	b.vector(3, 1, 5) // nobody is so far ahead
	require.EqualValues(t, 1, b.s.Counts.Strange)
	b.begin(1)
	b.vector(1, 0, 20000)
	b.vector(1, 2, 40000)
	require.EqualValues(t, 90001, binary.LittleEndian.Uint64(b.d.Host[atResult:]))
	require.EqualValues(t, 6, b.s.Counts.Sent)
}

// A call fails with a status, which is written once.
func TestFailures(t *testing.T) {
	for want, f := range map[uint32]func(b *bench){
		allreduce.BadTable: func(b *bench) { binary.LittleEndian.PutUint32(b.d.Host[atTable+8:], 3); b.begin(0) },
		allreduce.Denied:   func(b *bench) { b.d.Fail("dma_from_host_nb", spin.Denied, 1); b.begin(0) },
		allreduce.Illegal:  func(b *bench) { b.begin(5) },
		allreduce.Differs: func(b *bench) {
			b.begin(0)
			spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 4), MatchBits: allreduce.KindVector, HdrData: uint64(allreduce.Sign(4, allreduce.Sum, allreduce.Int32)) << 32})
			b.vector(0, 1, 1)
		},
	} {
		b := newBench(t)
		f(b)
		require.Equal(t, want, uint32(binary.LittleEndian.Uint64(b.d.HandlerHost)))
		require.Zero(t, b.s.Active)
	}
}

// Messages that mean nothing, of others that say they are the host, or of
// another protection domain are counted and nothing else.
func TestStrange(t *testing.T) {
	b := newBench(t)
	b.begin(0)
	b.begin(0)
	require.EqualValues(t, 1, b.s.Counts.Busy)
	for _, bits := range []uint64{0, 3, allreduce.KindBegin, allreduce.KindVector | 40<<4} {
		spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 8), MatchBits: bits, SourceNID: 1})
	}
	require.EqualValues(t, 4, b.s.Counts.Strange)
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 8), MatchBits: allreduce.KindVector | 7<<32})
	require.EqualValues(t, 1, b.s.Counts.Foreign)
}
