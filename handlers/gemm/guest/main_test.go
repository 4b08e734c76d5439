package main

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/gemm"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// bench is an accelerator whose host memory has two tiles of A, two of B and one
// of C, all ones.
type bench struct {
	d *spintest.Device
	s *gemm.State
}

const (
	atB = 2 * gemm.TileBytes
	atC = 4 * gemm.TileBytes
	tag = 7
)

func newBench(t *testing.T) *bench {
	b := &bench{d: spintest.New(t, spintest.Config{MTU: 256, HostMem: 5 * gemm.TileBytes, HandlerHostMem: 8, NID: 3})}
	b.s = spintest.NewState[gemm.State](b.d, gemm.TilesBytes)
	b.s.MatchBits, b.s.NID, b.s.PT, b.s.DoneCT = 9<<32, 3, 5, 6
	b.d.Counters = map[spin.Counter]*spintest.Count{6: {}}
	for i := 0; i < len(b.d.Host); i += 4 {
		binary.LittleEndian.PutUint32(b.d.Host[i:], math.Float32bits(1))
	}
	return b
}

var handlers = spintest.Handlers[gemm.State]{Header: load, Payload: multiply, Completion: store}

// begin is a call from node 3, or from another.
func (b *bench) begin(c gemm.Descriptor, m spintest.Message) spintest.Outcome {
	m.Data, m.UserHdrLen = append(spin.EncodeState(&c), 0), gemm.DescriptorBytes
	return spintest.Deliver(b.d, handlers, b.s, m)
}

func (b *bench) status() (status, tag uint32) {
	w := binary.LittleEndian.Uint64(b.d.HandlerHost)
	return uint32(w), uint32(w >> 32)
}

// twoProducts is C += A B with two tiles of A and two of B.
var twoProducts = gemm.Descriptor{B: atB, C: atC, Rows: 1, Inner: 2, Columns: 1, Tag: tag}

// A call of two products begins the second itself, stores C after it, and then
// reports. Any process of the protection domain may call.
func TestTwoProducts(t *testing.T) {
	b := newBench(t)
	b.begin(twoProducts, spintest.Message{MatchBits: 9 << 32, SourceNID: 100})
	require.Empty(t, b.d.Named("dma_to_host"))
	op := b.d.Named("to_self")
	require.Len(t, op, 1)
	require.EqualValues(t, 5, op[0].Op.PTIndex)
	spintest.Deliver(b.d, handlers, b.s, spintest.Message{
		Type: spin.MsgSelf, Data: append(op[0].UserHdr, op[0].Data...), UserHdrLen: gemm.DescriptorBytes, MatchBits: op[0].Op.MatchBits, HdrData: op[0].Op.HdrData, SourceNID: 3,
	})
	require.InDelta(t, 1+2*gemm.Side, math.Float32frombits(binary.LittleEndian.Uint32(b.d.Host[atC+4*1000:])), 0)
	status, done := b.status()
	require.Equal(t, []uint32{gemm.OK, tag}, []uint32{status, done})
	require.EqualValues(t, 1, b.d.Counters[6].Success)
	require.Equal(t, gemm.Counts{Calls: 1, Products: 2}, b.s.Counts)
}

// What is no call is counted, and a call that cannot go on says why.
func TestRefuses(t *testing.T) {
	b := newBench(t)
	b.begin(twoProducts, spintest.Message{MatchBits: 8 << 32})
	spintest.Deliver(b.d, handlers, b.s, spintest.Message{Data: make([]byte, gemm.DescriptorBytes), UserHdrLen: gemm.DescriptorBytes, MatchBits: 9 << 32})
	b.begin(twoProducts, spintest.Message{MatchBits: 9<<32 | gemm.KindNext, SourceNID: 100})
	require.Equal(t, gemm.Counts{Foreign: 1, Strange: 2}, b.s.Counts)
	b.begin(twoProducts, spintest.Message{MatchBits: 9 << 32})
	b.begin(twoProducts, spintest.Message{MatchBits: 9 << 32})
	require.EqualValues(t, 1, b.s.Counts.Busy)

	for want, c := range map[uint32]gemm.Descriptor{
		gemm.Illegal: {Rows: 1, Inner: 0, Columns: 1, Tag: tag},
		gemm.Denied:  {B: atB, C: 5 * gemm.TileBytes, Rows: 1, Inner: 1, Columns: 1, Tag: tag},
	} {
		b := newBench(t)
		require.Equal(t, spin.Drop, b.begin(c, spintest.Message{MatchBits: 9 << 32}).Header)
		status, done := b.status()
		require.Equal(t, []uint32{want, tag}, []uint32{status, done})
		b.begin(twoProducts, spintest.Message{MatchBits: 9 << 32})
		require.EqualValues(t, 1, b.s.Counts.Busy, "it takes no call after a failure")
	}
}
