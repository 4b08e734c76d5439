package rdma_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/rdmatest"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/runtime"
)

var (
	stormTransfers = flag.Int("storm.transfers", 600, "transfers of TestStorm")
	stormSeed      = flag.Uint64("storm.seed", 1, "seed of the first network of TestStorm")
)

// kind is the engine by itself, with pages that are there when somebody has
// asked for them, or all there.
var kind = rdmatest.Kind{
	Library: "rdma",
	Load: func(_ *rdmatest.Storm, c *runtime.Cluster) (rdmatest.Opener, error) {
		e, err := rdma.Load(c)
		if err != nil {
			return nil, err
		}
		return e.Open, nil
	},
	Profile: func(s *rdmatest.Storm) []string {
		// where an HPU takes cells, more wait than the profile has room for; a
		// descriptor that is dropped there is not sent again
		room := "nic.packet_buffer=64MiB"
		if s.Rand.IntN(2) == 0 {
			return []string{room, "os.kind=none", "smmu.kind=none"}
		}
		return []string{room}
	},
	State: func(*rdmatest.Storm) map[string]any { return map[string]any{} },
}

// Networks that have found something: a descriptor that a full packet buffer dropped.
func TestStormsThatFound(t *testing.T) {
	s := rdmatest.New(t, 301, &kind)
	s.Run()
	require.NoError(t, s.C.Close())
}

// Random transfers on networks that lose, damage, double and delay cells (rdmatest).
func TestStorm(t *testing.T) {
	var all rdma.Sent
	var got rdma.Received
	for done, seed := 0, *stormSeed; done < *stormTransfers; seed++ {
		s := rdmatest.New(t, seed, &kind)
		s.Run()
		done += len(s.Moves)
		for _, g := range s.Pages {
			c := g.Counts()
			all.Retransmitted += c.Sent.Retransmitted
			all.Nacks += c.Sent.Nacks
			all.Outdated += c.Sent.Outdated
			got.Duplicates += c.Received.Duplicates
			got.Outdated += c.Received.Outdated
			got.Damaged += c.Received.Damaged
			got.NoContext += c.Received.NoContext
		}
		require.NoError(t, s.C.Close())
	}
	for _, n := range []uint64{all.Retransmitted, all.Nacks, all.Outdated, got.Duplicates, got.Outdated, got.Damaged, got.NoContext} {
		require.Positive(t, n, "the test meets everything: %+v %+v", all, got)
	}
}
