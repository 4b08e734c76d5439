package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// A descriptor makes blocks that end at multiples of a block's size, two of them; an acknowledgement makes the next. Cells that come are written, and
// the block is acknowledged behind the last of them, however they come.
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
