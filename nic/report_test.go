package nic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
)

// What was lost is a sentence.
func TestLostMessageReads(t *testing.T) {
	for kind, want := range map[portals.OpKind]string{
		portals.OpPut: "of a put from rank 2", portals.OpAck: "of an ack from rank 2", portals.OpAtomic: "of an atomic from rank 2", portals.OpReply: "of a reply from rank 2",
	} {
		l := LostMessage{Rank: 1, Kind: kind, Initiator: portals.PhysID(2, 0), Packets: 1, Of: 4, Cause: "the link was down"}
		require.ErrorContains(t, l, want)
	}
}
