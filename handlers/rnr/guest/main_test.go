package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const (
	mtu  = 256
	peer = 3 // node of the other end
)

// end is one end of a connection by itself.
type end struct {
	t *testing.T
	d *spintest.Device
	s *rnr.State
}

func newEnd(t *testing.T) *end {
	d := spintest.New(t, spintest.Config{MTU: mtu, HostMem: 1 << 16, HandlerHostMem: rnr.HostMemory})
	s := spintest.NewState[rnr.State](d, 8*mtu+4096)
	s.MTU, s.PeerNID, s.PeerPT, s.Ready, s.Pause, s.Timeout, s.Retries = mtu, peer, 7, 1, 240000, 1000, 7
	return &end{t, d, s}
}

// packet delivers a message to the hardware, and returns what it has told the other end.
func (e *end) packet(source uint32, h rnr.Header, at, data uint64, bytes []byte) []*spin.Op {
	before := len(e.d.Puts())
	h.PSN &= rnr.PSNMask
	out := spintest.Deliver(e.d, spintest.Handlers[rnr.State]{Payload: hardware}, e.s, spintest.Message{
		Data: bytes, Offset: at, SourceNID: source, MatchBits: h.Bits(), HdrData: data,
	})
	require.Empty(e.t, out.Traps)
	var ops []*spin.Op
	for _, p := range e.d.Puts()[before:] {
		ops = append(ops, &p.Op)
	}
	return ops
}

func (e *end) write(number uint32, flags uint32) []*spin.Op {
	return e.packet(peer, rnr.Header{Kind: rnr.KindWrite, PSN: number, Flags: flags}, 4096*uint64(number&7), mtu, make([]byte, mtu))
}

func kindOf(op *spin.Op) rnr.Header { return rnr.HeaderOf(op.MatchBits) }

// A packet behind the one that is next is asked for once and dropped; the last
// of a message is acknowledged, and so is it when it comes again.
func TestPacketsComeInOrder(t *testing.T) {
	e := newEnd(t)
	require.Empty(t, e.write(0, 0))
	naks := e.write(2, 0)
	require.Len(t, naks, 1)
	require.Equal(t, rnr.Header{Kind: rnr.KindNak, PSN: 1}, kindOf(naks[0]))
	require.EqualValues(t, 1, naks[0].RemoteOffset, "all before it has landed")
	require.Empty(t, e.write(3, rnr.WantAck|rnr.LastOne))
	require.Empty(t, e.write(1, 0))
	for range 2 {
		acks := e.write(2, rnr.WantAck|rnr.LastOne)
		require.Len(t, acks, 1)
		require.Equal(t, rnr.Header{Kind: rnr.KindAck, PSN: 2}, kindOf(acks[0]))
	}
	require.EqualValues(t, 3, e.s.Responder.Landing.Una)
	require.EqualValues(t, 1, e.s.Stats.Naks)
}

// A fault is answered with an RNR NACK each time, and told the firmware once,
// until that has learned that it is resolved.
func TestFaultIsReportedOnce(t *testing.T) {
	e := newEnd(t)
	e.d.Fail("dma_to_host_nb", spin.Fault, 3)
	for i := range 3 {
		nacks := e.write(0, 0)
		require.Len(t, nacks, 1)
		require.Equal(t, rnr.Header{Kind: rnr.KindRNR}, kindOf(nacks[0]))
		require.EqualValues(t, 240000, nacks[0].HdrData)
		require.Len(t, e.d.Named("to_self"), 1, "fault %d", i)
	}
	require.Equal(t, rnr.Fault{Type: rnr.ResponderWrite, Length: mtu, Count: 1}, e.s.Faults[rnr.ResponderWrite])
	require.EqualValues(t, 1<<rnr.ResponderWrite, e.s.InFlight)
	h := spintest.Handlers[rnr.State]{Header: firmware}
	done := rnr.Header{Kind: rnr.KindResume}
	spintest.Deliver(e.d, h, e.s, spintest.Message{SourceNID: peer, MatchBits: done.Bits(), HdrData: rnr.ResponderWrite})
	require.EqualValues(t, 1<<rnr.ResponderWrite, e.s.InFlight, "of somebody else")
	spintest.Deliver(e.d, h, e.s, spintest.Message{MatchBits: done.Bits(), HdrData: rnr.ResponderWrite})
	require.Zero(t, e.s.InFlight)
	require.Empty(t, e.write(0, 0))
	require.EqualValues(t, 1, e.s.Responder.Landing.Una)
}

// A request to read waits until what was written before it has landed, and its
// response counts from there.
func TestReadIsServed(t *testing.T) {
	e := newEnd(t)
	require.Empty(t, e.write(0, 0))
	e.packet(peer, rnr.Header{Kind: rnr.KindRead, PSN: 1}, 4096, 2*mtu+10, make([]byte, 8))
	require.EqualValues(t, 4, e.s.Responder.Landing.Next)
	ops := e.packet(0, rnr.Header{Kind: rnr.KindRespond}, 0, 0, make([]byte, 8))
	require.Len(t, ops, 3)
	for i, op := range ops {
		require.Equal(t, rnr.Header{Kind: rnr.KindResponse, PSN: uint32(1 + i)}, kindOf(op))
	}
	require.EqualValues(t, 10, ops[2].Length)
}

// Messages of others than they should be from are counted, and change nothing.
func TestForeign(t *testing.T) {
	e := newEnd(t)
	for _, c := range []struct{ source, kind uint32 }{{5, rnr.KindWrite}, {0, rnr.KindWrite}, {peer, rnr.KindPostSend}, {peer, rnr.KindResume}, {5, rnr.KindAck}} {
		before := *e.s
		require.Empty(t, e.packet(c.source, rnr.Header{Kind: c.kind}, 0, 8, make([]byte, rnr.WorkSize)))
		before.Stats.Foreign++
		require.Equal(t, before, *e.s)
	}
}
