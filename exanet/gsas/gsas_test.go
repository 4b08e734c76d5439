package gsas_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet/gsas"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// cluster runs members of a space on the nodes of a profile.
type cluster struct {
	t *testing.T
	*runtime.Cluster
	space *gsas.Space
}

func newCluster(t *testing.T, name string, nodes int, seed uint64, o gsas.Options, set ...string) *cluster {
	t.Helper()
	p, err := profile.Load(name, set...)
	require.NoError(t, err)
	made, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes, Seed: seed})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, made.Close()) })
	if o.Heap == 0 {
		o.Heap = 64 << 10
	}
	s, err := gsas.New(made, o)
	require.NoError(t, err)
	return &cluster{t, made, s}
}

// member starts a program that is a member.
func (c *cluster) member(node int, f func(m *gsas.Member) error) {
	require.NoError(c.t, c.Spawn(node, fmt.Sprintf("p%d", c.Processes(node)), func(p *runtime.Proc) error {
		m, err := c.space.Open(p)
		if err != nil {
			return err
		}
		p.SleepUntil(sim.Microsecond) // until all have opened their interfaces
		return f(m)
	}))
}

func (c *cluster) run() {
	c.t.Helper()
	require.NoError(c.t, c.Run(context.Background()))
	failures, n := c.Failures()
	require.Zero(c.t, n, "%v", failures)
}

// still configures a machine without address translation.
var still = []string{"os.kind=none", "smmu.kind=none"}

// Every operation once, local and remote, on the prototype.
func TestOperations(t *testing.T) {
	for _, profile := range []string{"exanest", "exanest-qfdb"} {
		for node := range 2 {
			t.Run(fmt.Sprintf("%s/%d", profile, node), func(t *testing.T) {
				c := newCluster(t, profile, 2, 1, gsas.Options{PDID: 7})
				c.member(0, func(m *gsas.Member) error { return operations(t, m, node) })
				c.run()
				counts := c.space.Counts(node)
				require.Zero(t, counts.Allocated)
				require.Zero(t, counts.Lost+counts.Strange+counts.Foreign+counts.Refused)
				require.EqualValues(t, 2*len(sizes()), counts.Large+2*uint64(len(small())))
			})
		}
	}
}

func small() []int { return []int{1, 8, 13, gsas.Inline} }

func sizes() []int { return append(small(), gsas.Inline+1, 256, 5000, 16384, 40000) }

func operations(t *testing.T, m *gsas.Member, node int) error {
	at, err := m.Alloc(node, 40001)
	require.NoError(t, err)
	require.Equal(t, node, at.Node())
	from, into := m.Proc().Alloc(40000), m.Proc().Alloc(40000)
	for _, n := range sizes() {
		b := from.Slice(0, n).Write()
		for i := range b {
			b[i] = byte(i*7 + n)
		}
		require.NoError(t, m.Write(at.Plus(1), from.Slice(0, n)))
		clear(into.Write())
		require.NoError(t, m.Read(at.Plus(1), into.Slice(0, n)))
		require.Equal(t, from.Slice(0, n).Snapshot(), into.Slice(0, n).Snapshot())
	}
	require.NoError(t, m.Store(at.Plus(8), 5))
	for _, o := range []struct {
		do   func() (uint64, error)
		want uint64 // the word afterwards
	}{
		{func() (uint64, error) { return m.FetchAdd(at.Plus(8), 7) }, 12},
		{func() (uint64, error) { return m.FetchAdd(at.Plus(8), ^uint64(0)) }, 11},
		{func() (uint64, error) { return m.Swap(at.Plus(8), 20) }, 20},
		{func() (uint64, error) { return m.CompareAndSwap(at.Plus(8), 19, 1) }, 20},
		{func() (uint64, error) { return m.CompareAndSwap(at.Plus(8), 20, 6) }, 6},
		{func() (uint64, error) { return m.FetchOr(at.Plus(8), 9) }, 15},
		{func() (uint64, error) { return m.FetchAnd(at.Plus(8), 5) }, 5},
		{func() (uint64, error) { return m.FetchXor(at.Plus(8), 6) }, 3},
		{func() (uint64, error) { v, err := m.FetchMin(at.Plus(8), -2); return uint64(v), err }, ^uint64(1)},
		{func() (uint64, error) { v, err := m.FetchMax(at.Plus(8), -1); return uint64(v), err }, ^uint64(0)},
		{func() (uint64, error) { return m.FetchMinUnsigned(at.Plus(8), 9) }, 9},
		{func() (uint64, error) { return m.FetchMaxUnsigned(at.Plus(8), ^uint64(0)) }, ^uint64(0)},
	} {
		before, err := m.Load(at.Plus(8))
		require.NoError(t, err)
		old, err := o.do()
		require.NoError(t, err)
		require.Equal(t, before, old)
		now, err := m.Load(at.Plus(8))
		require.NoError(t, err)
		require.Equal(t, o.want, now)
	}
	require.NoError(t, m.Free(at))
	return nil
}
