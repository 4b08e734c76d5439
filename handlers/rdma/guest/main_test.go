package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// A descriptor makes blocks that end at multiples of a block's size, two of
// them; an acknowledgement makes the next. Cells that come are written, and the
// block is acknowledged behind the last of them, however they come.
func TestBlocks(t *testing.T) {
	const mtu, contexts, peers = 256, 4, 4
	d := spintest.New(t, spintest.Config{MTU: mtu, HostMem: 1 << 16, HandlerHostMem: 1024})
	behind := contexts*rdma.ContextSize + peers*rdma.PeerSize
	h := spintest.Handlers[rdma.State]{Header: control, Payload: cells}
	s := spintest.NewState[rdma.State](d, behind)
	s.MTU, s.Block, s.InFlight, s.Contexts, s.Peers, s.Timeout, s.Retries = mtu, 1024, 16, contexts, peers, 1000, 10
	begin := rdma.Descriptor{Source: 4096, Destination: 1000, Length: 3000, NID: 3, Notify: 8, Value: 7}
	header := func(kind, sequence uint32) uint64 {
		m := rdma.Header{Kind: kind, Sequence: sequence}
		return m.Bits()
	}
	to := spintest.Handlers[rdma.State]{Header: h.Header}
	spintest.Deliver(d, to, s, spintest.Message{Data: spin.EncodeState(&begin), UserHdrLen: 64, MatchBits: header(rdma.KindWrite, 0)})
	blocks := d.Named("put_from_host")
	require.Len(t, blocks, 2)
	require.Equal(t, []uint64{4096, 1000, 24, 3}, []uint64{blocks[0].Op.Offset, blocks[0].Op.RemoteOffset, blocks[0].Op.Length, uint64(blocks[0].Op.TargetNID)})
	require.Equal(t, []uint64{4120, 1024, 1024}, []uint64{blocks[1].Op.Offset, blocks[1].Op.RemoteOffset, blocks[1].Op.Length})
	spintest.Deliver(d, to, s, spintest.Message{SourceNID: 3, UserHdrLen: 64, MatchBits: header(rdma.KindAck, 1)})
	require.Len(t, d.Named("put_from_host"), 3)
	require.Len(t, d.Named("timer_cancel"), 1)
}

// A request to read has one time-out, although an answer may come when it has
// expired and its message has not been read; and it fails when nobody has
// answered in so many retries, not when it has been answered so often that the
// data is on its way.
func TestRequestHasOneTimeout(t *testing.T) {
	const retries = 3
	d := spintest.New(t, spintest.Config{MTU: 256, HostMem: 1 << 16, HandlerHostMem: 1024})
	h := spintest.Handlers[rdma.State]{Payload: cells}
	s := spintest.NewState[rdma.State](d, 4*rdma.ContextSize+4*rdma.PeerSize)
	s.MTU, s.Block, s.InFlight, s.Contexts, s.Peers, s.Timeout, s.Retries, s.BackOff = 256, 1024, 16, 4, 4, 1000, retries, 4
	send := func(kind, sequence, source uint32, status uint64, data []byte) {
		m := rdma.Header{Kind: kind, Sequence: sequence}
		spintest.Deliver(d, h, s, spintest.Message{SourceNID: source, Data: data, HdrData: status, MatchBits: m.Bits()})
	}
	running := func() int { return len(d.Named("timer")) - len(d.Named("timer_cancel")) }
	send(rdma.KindAsk, 0, 0, 0, spin.EncodeState(&rdma.Descriptor{Source: 4096, Destination: 1000, Length: 3000, NID: 3}))
	q := &s.Requests[0]
	require.Equal(t, rdma.Ongoing, int(q.Status))
	require.Equal(t, 1, running())
	word := make([]byte, 4)
	for range 20 { // the time-out expires, the answer comes first, then the message of the time-out
		send(rdma.KindTaken, q.Sequence, 3, rdma.Ongoing, word)
		send(rdma.KindAskTimeout, q.Sequence, 0, 0, word)
		require.Equal(t, rdma.Ongoing, int(q.Status), "it is answered all the time")
		require.Equal(t, 1, running())
	}
	for range retries { // nobody answers any more: the one of the first of these was sent above
		require.Equal(t, rdma.Ongoing, int(q.Status))
		send(rdma.KindAskTimeout, q.Sequence, 0, 0, word)
	}
	require.Equal(t, rdma.TimedOut, int(q.Status))
}
