package reduction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// ends has members of one switch make a call at the same time, and returns when
// each has ended it.
func ends(t *testing.T, p *profile.Profile, ranks int, begin func(m *Member, p *runtime.Proc) error) []sim.Time {
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: ranks})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	var members []portals.ID
	for i := range ranks {
		members = append(members, portals.PhysID(uint32(i), 0))
	}
	tree, err := Switches(c, members, 0)
	require.NoError(t, err)
	library, err := Load(c)
	require.NoError(t, err)
	g, err := library.Group(Options{Members: members, Tree: tree})
	require.NoError(t, err)
	times := make([]sim.Time, ranks)
	for rank := range members {
		require.NoError(t, c.Spawn(rank, "member", func(p *runtime.Proc) error {
			m, err := g.Open(p, rank, nil)
			require.NoError(t, err)
			require.NoError(t, begin(m, p))
			require.NoError(t, m.Wait())
			times[rank] = p.Now()
			return nil
		}))
	}
	require.NoError(t, c.Run(t.Context()))
	return times
}

// One packet over one switch: G on a link and U on the unit's, D on a bus. Of a
// broadcast the root's packet goes up behind nothing, since tokens are shorter, and
// copies leave one U after the other; the root's empty message has its place among
// them. Of a reduce of N ranks the last vector is in the unit (N-1)U behind the
// first, and the root's copy leaves behind the empty messages of those before it.
func TestTimeOfOnePacket(t *testing.T) {
	p, err := profile.Load("inc")
	require.NoError(t, err)
	f, n := &p.Fabric, int(p.Fabric.MTU)
	bus := func(n int) sim.Time { return p.DMA.Bandwidth.Time(int64(n)) }
	unit := func(n int) sim.Time { return f.Units.Rate.Time(int64(n) + int64(f.Header)) }
	way := f.Wire + f.Switch + f.Units.Wire
	up := p.NIC.Overhead + bus(n) + f.Serial(n) + way + p.Pools["unit"].Latency
	for _, ranks := range []int{2, 5, 32} {
		for _, root := range []int{0, 1, ranks - 1} {
			got := ends(t, p, ranks, func(m *Member, p *runtime.Proc) error { return m.Broadcast(p.Alloc(n), root) })
			behind := sim.Time(0)
			for rank, end := range got {
				if rank == root {
					require.Equal(t, up+behind+way+f.Serial(0)+p.Host.Poll, end, "root %d of %d", root, ranks)
					behind += unit(0)
					continue
				}
				require.Equal(t, up+behind+way+f.Serial(n)+bus(n)+p.Host.Poll, end, "rank %d of %d, root %d", rank, ranks, root)
				behind += unit(n)
			}
			got = ends(t, p, ranks, func(m *Member, p *runtime.Proc) error {
				v := p.Alloc(n)
				return m.Reduce(allreduce.Call{Source: v, Result: v, Op: allreduce.Sum, Type: allreduce.Int64}, root)
			})
			want := up + sim.Time(ranks-1)*unit(n) + sim.Time(root)*unit(0) + way + f.Serial(n) + bus(n) + p.Host.Poll
			require.Equal(t, want, got[root], "reduce of %d ranks, root %d", ranks, root)
		}
	}
}
