package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// A cell whose memory is absent goes into the FIFO and is refused; another of
// its page is not pushed again.
func TestFaultGoesIntoTheFIFO(t *testing.T) {
	const mtu, contexts, peers = 256, 4, 4
	d := spintest.New(t, spintest.Config{MTU: mtu, HostMem: 1 << 16, HandlerHostMem: 1024})
	behind := contexts*rdma.ContextSize + peers*rdma.PeerSize
	h := spintest.Handlers[part.State]{Header: control, Payload: cells}
	s := spintest.NewState[part.State](d, behind)
	s.RDMA.MTU, s.RDMA.Contexts, s.RDMA.Peers, s.RDMA.PDID = mtu, contexts, peers, 5
	s.Depth = part.Entries
	m := rdma.Header{Kind: rdma.KindData, PDID: 5, Slot: 6, Sequence: 9}
	d.Fail("dma_to_host", spin.Fault, 2)
	cell := spintest.Handlers[part.State]{Payload: h.Payload}
	out := spintest.Deliver(d, cell, s, spintest.Message{Data: make([]byte, 512), Offset: 0x3000, SourceNID: 2, MatchBits: m.Bits(), HdrData: 3 | 1<<32})
	require.Empty(t, out.Traps)
	require.EqualValues(t, 1, s.Tail)
	f, valid := s.FIFO[0].Decode()
	require.True(t, valid)
	require.Equal(t, part.FaultRecord{NID: 2, Slot: 6, Sequence: 9, PDID: 5, Address: 0x3000}, f)
	require.EqualValues(t, 1, s.Faults.Merged)
	require.Len(t, d.Puts(), 1)
	require.Equal(t, uint64(rdma.NackFault), d.Puts()[0].Op.HdrData)
}
