package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/spin/spintest"
)

// A launch makes a cell with the register's protection domain and starts a
// timer; the cell is queued and acknowledged, a copy of it acknowledged only,
// and the acknowledgement sets the status and takes the timer back.
func TestMessage(t *testing.T) {
	const peers = 4
	d := spintest.New(t, spintest.Config{MTU: 256, HostMem: 64, HandlerHostMem: 4 * mailbox.EntrySize})
	s := spintest.NewState[mailbox.State](d, peers*mailbox.PeerSize)
	s.PDID, s.PT, s.Depth, s.Peers, s.Timeout, s.Retries = 5, 2, 4, peers, 1000, 3
	front, back := spintest.Handlers[mailbox.State]{Header: packetizer}, spintest.Handlers[mailbox.State]{Payload: deliver}
	launch := mailbox.Header{Kind: mailbox.KindLaunch, PDID: 99, Channel: 1, Length: 20}
	payload := []byte("twenty bytes of text")
	spintest.Deliver(d, front, s, spintest.Message{Data: payload, UserHdrLen: 64, MatchBits: launch.Bits(), HdrData: mailbox.Destination(3, 1, 7)})
	require.EqualValues(t, mailbox.Ongoing, s.Channels[1].Status)
	cells := d.Puts()
	require.Len(t, cells, 1)
	op := cells[0].Op
	require.Equal(t, []uint64{3, 1, 7, 32}, []uint64{uint64(op.TargetNID), uint64(op.TargetPID), uint64(op.PTIndex), op.Length})
	require.EqualValues(t, 5, mailbox.HeaderOf(op.MatchBits).PDID)
	require.Len(t, d.Named("timer"), 1)

	cell := spintest.Message{Data: append(payload, make([]byte, 12)...), SourceNID: 9, MatchBits: op.MatchBits, HdrData: op.HdrData}
	for copies := range 2 {
		spintest.Deliver(d, back, s, cell)
		require.EqualValues(t, 1, s.Tail)
		answers := d.Puts()[1:]
		require.Len(t, answers, 1+copies)
		require.EqualValues(t, mailbox.KindAck, mailbox.HeaderOf(answers[copies].Op.MatchBits).Kind)
	}
	require.EqualValues(t, 1, s.Received.Duplicates)
	require.Equal(t, "twenty bytes of text", string(d.HandlerHost[mailbox.Word:mailbox.Word+20]))

	ack := d.Puts()[1].Op
	spintest.Deliver(d, front, s, spintest.Message{SourceNID: 3, SourcePID: 1, UserHdrLen: 64, MatchBits: ack.MatchBits, HdrData: ack.HdrData})
	require.EqualValues(t, mailbox.Acked, s.Channels[1].Status)
	require.Len(t, d.Named("timer_cancel"), 1)
	spintest.Deliver(d, front, s, spintest.Message{SourceNID: 8, UserHdrLen: 64, MatchBits: ack.MatchBits, HdrData: ack.HdrData})
	require.EqualValues(t, 1, s.Sent.Outdated)
}
