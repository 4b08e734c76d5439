package ftbcast

import (
	"context"
	"flag"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var exhaustive = flag.Int("ftbcast.ranks", 6, "ranks up to which every set of failed nodes is tried")

// trial is one broadcast among ranks some of which are down.
type trial struct {
	ranks, root, size int
	failed            uint64   // bit r: rank r is down
	at                sim.Time // since when
	set               []string // overrides of the profile
	profile           string
	seed              uint64
}

// run broadcasts, and returns how many bytes each rank has got.
func (b *trial) run(t require.TestingT) []int {
	p, err := profile.Load(b.profile, b.set...)
	require.NoError(t, err)
	for i := range b.ranks {
		if b.failed>>i&1 == 1 {
			p.Fabric.Faults.Down = append(p.Fabric.Faults.Down, fabric.Down{Node: &i, From: b.at, To: sim.Second})
		}
	}
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: b.ranks, Seed: b.seed})
	require.NoError(t, err)
	library, err := Load(c)
	require.NoError(t, err)
	message := make([]byte, b.size)
	rng := rand.New(rand.NewPCG(b.seed, 1))
	for i := range message {
		message[i] = byte(rng.Uint32())
	}
	members, memory := make([]*Member, b.ranks), make([]runtime.View, b.ranks)
	for rank := range b.ranks {
		require.NoError(t, c.Spawn(rank, "member", func(p *runtime.Proc) (err error) {
			memory[rank] = p.Alloc(b.size)
			if rank == b.root {
				memory[rank].CopyFrom(message)
			}
			members[rank], err = library.Join(p, Options{PT: 3, MatchBits: 7, Root: b.root, Memory: memory[rank]})
			if err != nil || rank != b.root {
				return err
			}
			p.Compute(sim.Nanosecond)
			return members[rank].Send()
		}))
	}
	require.NoError(t, c.Run(context.Background()))
	_, failures := c.Failures()
	require.Zero(t, failures)
	got := make([]int, b.ranks)
	for rank, m := range members {
		got[rank], err = m.Arrived()
		require.NoError(t, err)
		if rank != b.root && got[rank] == b.size {
			require.Equal(t, message, memory[rank].Read(), "%+v: rank %d", b, rank)
		}
	}
	require.NoError(t, c.Close())
	return got
}

// Every set of failed nodes that is smaller than the number of neighbours: all
// others have every byte, once.
func TestEverySetOfFailedNodes(t *testing.T) {
	for ranks := 2; ranks <= *exhaustive; ranks++ {
		neighbours := len(Graph(uint32(ranks)))
		for failed := range uint64(1) << ranks {
			root := bits.TrailingZeros64(^failed)
			if bits.OnesCount64(failed) >= neighbours || root >= ranks {
				continue
			}
			for _, root := range []int{root, ranks - 1 - bits.LeadingZeros64(^failed<<(64-ranks))} {
				b := &trial{ranks: ranks, root: root, size: 3 << 12, failed: failed, profile: "spin-int", seed: failed}
				b.delivered(t)
			}
		}
	}
}

// delivered runs the trial: every rank that is up has the broadcast, none that is down.
func (b *trial) delivered(t require.TestingT) {
	for rank, n := range b.run(t) {
		want := max(b.size, 1)
		if b.failed>>rank&1 == 1 {
			want = 0
		}
		require.Equal(t, want, n, "%+v: rank %d", b, rank)
	}
}

// Random ranks, roots, sizes and sets of failed nodes, on both devices.
func TestRandomFailures(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { draw(r, 64).delivered(r) })
}

func draw(r *rapid.T, most int) *trial {
	b := &trial{ranks: rapid.IntRange(1, most).Draw(r, "ranks"), seed: rapid.Uint64().Draw(r, "seed")}
	b.root = rapid.IntRange(0, b.ranks-1).Draw(r, "root")
	b.profile = rapid.SampledFrom([]string{"spin-int", "spin-dis"}).Draw(r, "profile")
	b.size = rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(4000, 20000), rapid.Just(8<<12)).Draw(r, "size")
	for range rapid.IntRange(0, max(len(Graph(uint32(b.ranks)))-1, 0)).Draw(r, "failed") {
		if rank := rapid.IntRange(0, b.ranks-1).Draw(r, "down"); rank != b.root {
			b.failed |= 1 << rank
		}
	}
	return b
}

// A node that fails in the middle of a broadcast, the root among them: all that
// are up have all of it, or none has.
func TestFailuresOnTheWay(t *testing.T) {
	early := &trial{ranks: 9, root: 2, size: 9000, failed: 1 << 2, at: 300 * sim.Nanosecond, profile: "spin-int"}
	require.Equal(t, make([]int, 9)[:2], early.run(t)[:2], "the root fails before it has sent anything")
	rapid.Check(t, func(r *rapid.T) {
		b := draw(r, 16)
		b.failed |= uint64(rapid.IntRange(0, 1).Draw(r, "root fails")) << b.root
		if bits.OnesCount64(b.failed) >= len(Graph(uint32(b.ranks))) {
			return
		}
		b.at = sim.Time(rapid.IntRange(1, 8000).Draw(r, "at")) * sim.Nanosecond
		complete, up := 0, 0
		for rank, n := range b.run(r) {
			if b.failed>>rank&1 == 1 || rank == b.root {
				continue
			}
			up++
			if n == max(b.size, 1) {
				complete++
			}
		}
		require.Contains(r, []int{0, up}, complete, "%+v", b)
		if b.failed>>b.root&1 == 0 {
			require.Equal(r, up, complete, "%+v: the root is up", b)
		}
	})
}

// Lost, damaged, doubled and late packets: what comes is right, and comes once.
// Everybody has a broadcast of one packet, since a rank has seven neighbours at
// least (the chance that all their copies are lost or damaged is some 1e-10),
// and any with a reliable transport.
func TestFaultsOfTheNetwork(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b := draw(r, 24)
		b.set = []string{"fabric.faults={loss: 0.02, corrupt: 0.02, duplicate: 0.05, delay: 0.05, max_delay: 3us}"}
		b.failed = 0
		reliable := rapid.Bool().Draw(r, "reliable")
		if reliable {
			b.set = append(b.set, "transport.kind=reliable")
		}
		for rank, n := range b.run(r) {
			require.LessOrEqual(r, n, max(b.size, 1))
			if reliable || b.ranks >= 16 && b.size <= 4096 {
				require.Equal(r, max(b.size, 1), n, "%+v: rank %d", b, rank)
			}
		}
	})
}

func TestWrongUse(t *testing.T) {
	p, err := profile.Load("spin-int", "hpu.max_hpu_memory=4KiB")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 3})
	require.NoError(t, err)
	library, err := Load(c)
	require.NoError(t, err)
	var others runtime.View
	require.NoError(t, c.Spawn(0, "other", func(p *runtime.Proc) error { others = p.Alloc(8); return nil }))
	require.NoError(t, c.Spawn(1, "member", func(p *runtime.Proc) error {
		p.Sleep(sim.Nanosecond)
		_, err := library.Join(p, Options{PT: 3, Memory: others})
		require.EqualError(t, err, "ftbcast: the memory is another process's, expected the rank's own")
		_, err = library.Join(p, Options{Root: 3})
		require.EqualError(t, err, "ftbcast: root 3, expected a rank below 3")
		m, err := library.Join(p, Options{PT: 3, Root: 0, Memory: p.Alloc(8)})
		require.NoError(t, err)
		require.EqualError(t, m.Send(), "ftbcast: rank 1 sends a broadcast of rank 0")
		require.NoError(t, m.Leave())
		_, err = library.Join(p, Options{PT: 3, Root: 0, Memory: p.Alloc(128 << 20)})
		require.ErrorContains(t, err, "ftbcast: ", "4 KiB are bits for 32,768 packets, and there is the state")
		t.Log(err)
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
	require.NoError(t, c.Close())
}
