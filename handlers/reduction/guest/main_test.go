package main

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// bench is an aggregator with two processes and an aggregator below it.
type bench struct {
	d *spintest.Device
	s *reduction.State
	h spintest.Handlers[reduction.State]
}

func newBench(t *testing.T, root uint32) *bench {
	sized := reduction.State{Children: 3, Window: 2, Block: 8}
	d := spintest.New(t, spintest.Config{MTU: 64})
	b := &bench{d: d, s: spintest.NewState[reduction.State](d, int(sized.Bytes())), h: spintest.Handlers[reduction.State]{Payload: aggregator}}
	b.s.PT, b.s.Children, b.s.Window, b.s.Block, b.s.Root = 9, 3, 2, 8, root
	b.s.ParentNID, b.s.ParentPID, b.s.Place = 77, 7, 5
	table := spintest.Handlers[reduction.State]{Payload: func(_ *spin.Payload, s *reduction.State) spin.Code {
		for i := range s.Children {
			*child(s, i) = reduction.Child{NID: 100 + i, PID: i, Inner: i / 2}
		}
		return spin.Success
	}}
	spintest.Deliver(d, table, b.s, spintest.Message{Data: []byte{0}})
	return b
}

// vector is a block of a child; index is its number in the call.
func (b *bench) vector(place, run, index uint32, value uint64) {
	b.signed(place, run, index, value, allreduce.Sum)
}

func (b *bench) signed(place, run, index uint32, value uint64, op uint16) spintest.Outcome {
	return spintest.Deliver(b.d, b.h, b.s, spintest.Message{
		Data:      binary.LittleEndian.AppendUint64(nil, value),
		MatchBits: reduction.KindVector | uint64(place)<<reduction.PlaceShift | uint64(index)<<reduction.IndexShift,
		HdrData:   uint64(run) | uint64(reduction.Sign(16, op, allreduce.Int64))<<32,
	})
}

func (b *bench) value(p int) uint64 { return binary.LittleEndian.Uint64(b.d.Puts()[p].Data) }

// The root combines in the order of the children, whenever they come, and sends
// the block to each: to a process with its place, to an aggregator with its
// index. A slot serves the block that is two windows later.
func TestRoot(t *testing.T) {
	b := newBench(t, 1)
	for run := range uint32(9) {
		b.vector(2, run, 3, 400)
		b.vector(0, run, 3, 1)
		require.Len(t, b.d.Puts(), int(3*run))
		b.vector(1, run, 3, 20)
		for i, p := range b.d.Puts()[3*run:] {
			require.Equal(t, []uint32{100 + uint32(i), uint32(i), 9}, []uint32{p.Op.TargetNID, p.Op.TargetPID, p.Op.PTIndex})
			bits, offset := uint64(reduction.KindResult|3<<reduction.IndexShift), uint64(0)
			if i < 2 {
				bits, offset = bits|uint64(run%2)<<reduction.PlaceShift, 3*8
			}
			require.Equal(t, []uint64{bits, offset, uint64(run)}, []uint64{p.Op.MatchBits, p.Op.RemoteOffset, p.Op.HdrData & 0xffffffff})
			require.EqualValues(t, 421, b.value(3*int(run)+i))
		}
	}
	require.Equal(t, reduction.Counts{Vectors: 27, Early: 9, Blocks: 9}, b.s.Counts)
}

// One that is not the root sends the sum up, and passes the result down as it
// comes.
func TestInner(t *testing.T) {
	b := newBench(t, 0)
	b.vector(1, 0, 1, 20)
	b.vector(0, 0, 1, 1)
	b.vector(2, 0, 1, 400)
	require.Len(t, b.d.Puts(), 1)
	up := b.d.Puts()[0].Op
	require.Equal(t, []uint32{77, 7, 9}, []uint32{up.TargetNID, up.TargetPID, up.PTIndex})
	require.EqualValues(t, reduction.KindVector|5<<reduction.PlaceShift|1<<reduction.IndexShift, up.MatchBits)
	require.EqualValues(t, 421, b.value(0))
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{
		Data: binary.LittleEndian.AppendUint64(nil, 5000), MatchBits: reduction.KindResult | 1<<reduction.IndexShift, HdrData: up.HdrData,
	})
	require.Len(t, b.d.Puts(), 4)
	require.EqualValues(t, 5000, b.value(3))
	require.EqualValues(t, 1, b.s.Counts.Results)
}

// A sum that the device refuses is an error of the handler, also behind vectors
// that were combined without one.
func TestRefusedSum(t *testing.T) {
	for _, root := range []uint32{0, 1} {
		b := newBench(t, root)
		b.vector(0, 0, 0, 1)
		b.vector(1, 0, 0, 1)
		b.d.Fail("put_from_device", spin.Denied, 1)
		require.True(t, b.signed(2, 0, 0, 1, allreduce.Sum).Failed)
	}
}

// Vectors that differ, or the news of them, go to all neighbours once.
func TestTrouble(t *testing.T) {
	for _, root := range []uint32{0, 1} {
		b := newBench(t, root)
		b.vector(0, 0, 0, 1)
		b.signed(1, 0, 0, 1, allreduce.Max)
		b.signed(2, 0, 0, 1, allreduce.Max)
		spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 4), MatchBits: reduction.KindTrouble})
		require.Len(t, b.d.Puts(), 4-int(root))
		for _, p := range b.d.Puts() {
			require.EqualValues(t, reduction.KindTrouble, p.Op.MatchBits)
			require.EqualValues(t, reduction.Differs, binary.LittleEndian.Uint32(p.Data))
		}
	}
}

// What means nothing is counted, and disturbs no other block: of no child, of a
// block out of the window, twice, too long, of no kind.
func TestStrange(t *testing.T) {
	b := newBench(t, 1)
	b.vector(3, 0, 0, 1)
	b.vector(0, 4, 0, 1)
	b.vector(0, 0, 0, 1)
	b.vector(0, 0, 0, 1)
	b.vector(2, 0, 0, 1)
	b.vector(2, 0, 0, 1)
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 9), MatchBits: reduction.KindVector})
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 8)})
	require.Equal(t, reduction.Counts{Vectors: 5, Early: 3, Strange: 4}, b.s.Counts)
	require.Empty(t, b.d.Puts())
	b.vector(1, 0, 0, 1) // the copy of child 0's vector is found when its block is over
	require.Equal(t, reduction.Counts{Vectors: 6, Early: 3, Blocks: 1, Strange: 5}, b.s.Counts)
	for place := range uint32(3) {
		b.vector(place, 4, 0, 1)
	}
	require.Len(t, b.d.Puts(), 6)
}
