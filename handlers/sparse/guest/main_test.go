package main

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/sparse"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// bench is an aggregator of two children, with packets of two pairs and blocks
// of eight indices.
type bench struct {
	d *spintest.Device
	s *sparse.State
	h spintest.Handlers[sparse.State]
}

const packet = 2 * sparse.PairBytes

func newBench(t *testing.T, root, table uint32) *bench {
	state := sparse.State{
		PT: 9, Children: 2, Window: 2, Packet: packet, Span: 8, Table: table, Root: root,
		ParentNID: 77, ParentPID: 7, Place: 5, Kept: 8 * (sparse.KeptHead + packet), Results: 4,
	}
	return newBenchOf(t, state, 4)
}

// newBenchOf is for children of so many packets a block.
func newBenchOf(t *testing.T, state sparse.State, packets uint32) *bench {
	d := spintest.New(t, spintest.Config{MTU: 64})
	b := &bench{d: d, s: spintest.NewState[sparse.State](d, int(state.Bytes())), h: spintest.Handlers[sparse.State]{Payload: aggregator}}
	*b.s = state
	children := spintest.Handlers[sparse.State]{Payload: func(_ *spin.Payload, s *sparse.State) spin.Code {
		for i := range s.Children {
			first := packets * i * (sparse.KeptHead + packet)
			*child(s, i) = sparse.Child{NID: 100 + i, PID: i, First: first, Packets: packets, Bytes: packet}
		}
		return spin.Success
	}}
	spintest.Deliver(d, children, b.s, spintest.Message{Data: []byte{0}})
	return b
}

// none is what stands for no pair.
var none = sparse.Pair{Index: sparse.None}

// pairs is a packet of a child, the number-th one of a block.
func (b *bench) pairs(place, number, run, last uint64, list ...sparse.Pair) spin.Code {
	return b.counted(place, number, run, last, 100, list...)
}

func (b *bench) counted(place, number, run, last, count uint64, list ...sparse.Pair) spin.Code {
	var data []byte
	for _, p := range list {
		data = binary.LittleEndian.AppendUint32(data, p.Index)
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(p.Value))
	}
	return spintest.Deliver(b.d, b.h, b.s, spintest.Message{
		Data:      data,
		MatchBits: sparse.KindPairs | last | place<<sparse.PlaceShift | number<<sparse.PacketShift | 1<<sparse.IndexShift,
		HdrData:   run | count<<32,
	}).Payloads[0]
}

// sent returns the pairs of a put, and whether it was the last of its block.
func (b *bench) sent(i int) (list []sparse.Pair, last bool) {
	p := b.d.Puts()[i]
	for at := 0; at < len(p.Data); at += sparse.PairBytes {
		list = append(list, sparse.Pair{
			Index: binary.LittleEndian.Uint32(p.Data[at:]), Value: math.Float32frombits(binary.LittleEndian.Uint32(p.Data[at+4:])),
		})
	}
	return list, p.Op.MatchBits&sparse.Last != 0
}

// Packets are added in the order of the children and of their numbers, whenever
// they come: 1e8 is lost in -1e8, 3 is not.
func TestOrder(t *testing.T) {
	b := newBench(t, 0, 8)
	for run := range uint64(9) {
		b.pairs(1, 1, run, sparse.Last, sparse.Pair{Index: 9, Value: 3})
		b.pairs(1, 0, run, 0, sparse.Pair{Index: 8, Value: -1e8}, sparse.Pair{Index: 12, Value: 5})
		b.pairs(0, 1, run, sparse.Last, sparse.Pair{Index: 9, Value: 1})
		require.Len(t, b.d.Puts(), int(2*run))
		b.pairs(0, 0, run, 0, sparse.Pair{Index: 8, Value: 1e8}, sparse.Pair{Index: 15, Value: 7})
		require.Len(t, b.d.Puts(), int(2*run+2))
		list, last := b.sent(int(2 * run)) // index 8 has the sum 0
		require.False(t, last)
		require.Equal(t, []sparse.Pair{{Index: 9, Value: 4}, {Index: 12, Value: 5}}, list)
		list, last = b.sent(int(2*run + 1))
		require.True(t, last)
		require.Equal(t, []sparse.Pair{{Index: 15, Value: 7}}, list)
		up := b.d.Puts()[2*run+1].Op
		require.Equal(t, []uint32{77, 7, 9}, []uint32{up.TargetNID, up.TargetPID, up.PTIndex})
		require.EqualValues(t, sparse.KindPairs|sparse.Last|5<<sparse.PlaceShift|1<<sparse.PacketShift|1<<sparse.IndexShift, up.MatchBits)
		require.Equal(t, run|100<<32, up.HdrData)
	}
	require.Equal(t, sparse.Counts{Packets: 36, Early: 27, Blocks: 9}, b.s.Counts)
}

// A handler adds so many early packets, and a message to self has another one go
// on, which finds the slot still taken.
func TestTurns(t *testing.T) {
	const each = 2 * sparse.Turn / 3
	size := uint32(sparse.KeptHead + packet)
	b := newBenchOf(t, sparse.State{
		PT: 9, Children: 4, Window: 1, Packet: packet, Span: 8, Table: 8, Kept: 4 * each * size, Results: 4,
	}, each)
	for place := range uint64(4) {
		for n := range uint64(each) {
			if place+n > 0 {
				b.pairs(place, n, 0, n/(each-1), sparse.Pair{Index: 8, Value: 1}, sparse.Pair{Index: 9, Value: 1})
			}
		}
	}
	handlers := 1
	b.pairs(0, 0, 0, 0, sparse.Pair{Index: 8, Value: 1}, sparse.Pair{Index: 9, Value: 1})
	for ; len(b.d.Puts()) == 0; handlers++ {
		self := b.d.Named("to_self")[handlers-1]
		spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, self.Op.Length), MatchBits: self.Op.MatchBits, HdrData: self.Op.HdrData})
	}
	require.Equal(t, 3, handlers)
	list, last := b.sent(0)
	require.True(t, last)
	require.Equal(t, []sparse.Pair{{Index: 8, Value: 4 * each}, {Index: 9, Value: 4 * each}}, list)
}

// A put that fails is the handler's failure, also if others succeed after it.
// Without room for messages to self, a handler goes on itself.
func TestFailures(t *testing.T) {
	b := newBench(t, 1, 8)
	b.pairs(0, 0, 0, sparse.Last, none)
	b.d.Fail("put_from_device", spin.Denied, 1)
	require.Equal(t, spin.Fail, b.pairs(1, 0, 0, sparse.Last, none))
	require.Len(t, b.d.Puts(), 2)
	b = newBenchOf(t, sparse.State{PT: 9, Children: 1, Window: 1, Packet: packet, Span: 8, Table: 8, Kept: 8 * sparse.Turn * packet, Results: 4}, 2*sparse.Turn)
	for n := range uint64(2*sparse.Turn - 1) {
		b.pairs(0, n+1, 0, n/(2*sparse.Turn-2), sparse.Pair{Index: 8, Value: 1}, sparse.Pair{Index: 9, Value: 1})
	}
	b.d.Fail("to_self", spin.NoSpace, 1000)
	b.pairs(0, 0, 0, 0, none)
	require.Len(t, b.d.Puts(), 1)
}

// A hash table sends a pair on whose place is taken, in full packets, and what it
// has at the end. Nothing is lost or added twice.
func TestSpill(t *testing.T) {
	b := newBench(t, 0, 2)
	b.pairs(0, 0, 0, 0, sparse.Pair{Index: 8, Value: 1}, sparse.Pair{Index: 10, Value: 2}) // 10 spills
	b.pairs(0, 1, 0, sparse.Last, sparse.Pair{Index: 12, Value: 3}, sparse.Pair{Index: 9, Value: 4})
	require.Empty(t, b.d.Puts())
	b.pairs(1, 0, 0, sparse.Last, sparse.Pair{Index: 10, Value: 5}, sparse.Pair{Index: 8, Value: 6})
	require.Len(t, b.d.Puts(), 3)
	var all []sparse.Pair
	for i := range 3 {
		list, last := b.sent(i)
		require.Equal(t, i == 2, last)
		all = append(all, list...)
	}
	require.Equal(t, []sparse.Pair{{Index: 10, Value: 2}, {Index: 12, Value: 3}, {Index: 10, Value: 5}, {Index: 8, Value: 7}, {Index: 9, Value: 4}}, all)
	require.Equal(t, sparse.Counts{Packets: 3, Spilled: 3, Blocks: 1}, b.s.Counts)
}

// A block of zeros is one packet, up and down. The root sends to every child, at
// the offset of the block and packet in a window.
func TestEmptyBlock(t *testing.T) {
	for _, root := range []uint32{0, 1} {
		b := newBench(t, root, 8)
		b.pairs(1, 0, 1, sparse.Last, none)
		b.pairs(0, 0, 1, sparse.Last, none)
		require.Len(t, b.d.Puts(), int(1+root))
		for i := range b.d.Puts() {
			list, last := b.sent(i)
			require.True(t, last)
			require.Equal(t, []sparse.Pair{none}, list)
			if op := b.d.Puts()[i].Op; root == 1 {
				require.Equal(t, []uint64{100 + uint64(i), 4 * packet}, []uint64{uint64(op.TargetNID), op.RemoteOffset})
			}
		}
	}
}

// A packet of the result goes down as it came.
func TestResult(t *testing.T) {
	b := newBench(t, 0, 8)
	bits := uint64(sparse.KindResult | sparse.Last | 2<<sparse.PacketShift | 1<<sparse.IndexShift)
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 8), MatchBits: bits, HdrData: 5 | 100<<32})
	require.Len(t, b.d.Puts(), 2)
	for i, p := range b.d.Puts() {
		require.Equal(t, []uint64{100 + uint64(i), bits, 5 | 100<<32, (4 + 2) * packet}, []uint64{uint64(p.Op.TargetNID), p.Op.MatchBits, p.Op.HdrData, p.Op.RemoteOffset})
	}
	require.EqualValues(t, 1, b.s.Counts.Results)
}

// Vectors of other lengths, or the news of them, go to all neighbours once.
func TestTrouble(t *testing.T) {
	for _, root := range []uint32{0, 1} {
		b := newBench(t, root, 8)
		b.pairs(0, 0, 0, sparse.Last, none)
		b.counted(1, 0, 0, sparse.Last, 101, none)
		spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 4), MatchBits: sparse.KindTrouble})
		require.Len(t, b.d.Puts(), 3-int(root))
		for _, p := range b.d.Puts() {
			require.EqualValues(t, sparse.KindTrouble, p.Op.MatchBits)
			require.EqualValues(t, sparse.Differs, binary.LittleEndian.Uint32(p.Data))
		}
	}
}

// What means nothing is counted, and disturbs no block: of no child, a packet too
// many, of a block out of the window, twice, of no whole pairs, of no kind, an
// index of another block.
func TestStrange(t *testing.T) {
	b := newBench(t, 0, 8)
	one := sparse.Pair{Index: 8, Value: 1}
	b.pairs(2, 0, 0, 0, one)
	b.pairs(0, 4, 0, 0, one)
	b.pairs(0, 0, 0, 0, one, one, one)
	b.pairs(0, 0, 4, 0, one)
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 9), MatchBits: sparse.KindPairs})
	spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, 8)})
	require.EqualValues(t, 6, b.s.Counts.Strange)
	b.pairs(0, 0, 0, 0, one, sparse.Pair{Index: 16, Value: 1})
	b.pairs(0, 0, 0, 0, one) // twice: found when the slot comes round
	for i := range uint64(3) {
		b.pairs(0, 1+i, 0, 0, one)
	}
	b.pairs(0, 0, 0, 0, one) // none of its packets is the last one
	require.EqualValues(t, 7, b.s.Counts.Strange)
	require.Empty(t, b.d.Puts())
}
