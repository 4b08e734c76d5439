package gsas_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/exanet/gsas"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// An operation that cannot be done returns the reason, and changes nothing.
func TestErrors(t *testing.T) {
	c := newCluster(t, "exanest", 3, 1, gsas.Options{PDID: 7, Heap: 1024, Nodes: []int{0, 1}}, still...)
	c.member(0, func(m *gsas.Member) error {
		big, small, none := m.Proc().Alloc(600), m.Proc().Alloc(8), m.Proc().Alloc(0)
		at, err := m.Alloc(1, 500)
		require.NoError(t, err)
		require.NoError(t, m.Store(at, 42))
		_, err = m.Alloc(1, 600)
		require.EqualError(t, err, "gsas: alloc of 600 bytes on node 1: the heap of the node has no such piece")
		_, err = m.Alloc(2, 8)
		require.EqualError(t, err, "gsas: alloc of 8 bytes on node 2: that node has no home")
		for _, node := range []int{-1, 3, 1 << 30} {
			_, err = m.Alloc(node, 8)
			require.ErrorIs(t, err, gsas.ErrNoHome)
		}
		beyond(t, m, at, big, none)
		require.EqualError(t, m.Write(at.Plus(493), small), fmt.Sprintf("gsas: write at %v: it goes beyond the end of what is allocated there", at.Plus(493)))
		require.ErrorIs(t, m.Read(at.Plus(493), small), gsas.ErrBounds)
		_, err = m.FetchAdd(at.Plus(496), 1)
		require.ErrorIs(t, err, gsas.ErrBounds)
		_, err = m.FetchAdd(at.Plus(4), 1)
		require.ErrorIs(t, err, gsas.ErrUnaligned)
		require.ErrorIs(t, m.Free(at.Plus(16)), gsas.ErrDead)
		require.ErrorIs(t, m.Barrier(at), gsas.ErrNotBarrier)
		barrier, err := m.NewBarrier(1, 1)
		require.NoError(t, err)
		require.ErrorIs(t, m.Read(barrier, small), gsas.ErrBarrier)
		require.ErrorIs(t, m.Store(barrier, 1), gsas.ErrBarrier)
		require.ErrorIs(t, m.Barrier(barrier.Plus(8)), gsas.ErrNotBarrier)
		require.NoError(t, m.Barrier(barrier))
		require.NoError(t, m.Free(barrier))
		v, err := m.Load(at)
		require.NoError(t, err)
		require.EqualValues(t, 42, v)
		require.NoError(t, m.Free(at))
		dead(t, m, at, big, small)
		dead(t, m, gsas.Null, big, small)
		dead(t, m, barrier, big, small)
		nowhere := gsas.Pointer(uint64(at) + 1<<42) // node 2
		require.ErrorIs(t, m.Read(nowhere, small), gsas.ErrNoHome)
		// another process of node 1
		require.ErrorIs(t, m.Read(gsas.Pointer(uint64(at)+1<<39), small), gsas.ErrNoHome)
		require.Equal(t, gsas.Null, at.Plus(1<<40))
		require.Equal(t, "null", gsas.Null.String())
		return nil
	})
	c.run()
	require.Zero(t, c.space.Counts(1).Allocated)
	require.EqualValues(t, 32, c.space.Counts(1).Refused)
	require.Zero(t, c.space.Counts(2))
	require.Zero(t, c.space.Counts(-1))
}

// beyond checks that every operation refuses an invalid size.
func beyond(t *testing.T, m *gsas.Member, at gsas.Pointer, big, none runtime.View) {
	for _, n := range []int{0, -1} {
		_, err := m.Alloc(1, n)
		require.ErrorIs(t, err, gsas.ErrSize)
		_, err = m.NewBarrier(1, n)
		require.ErrorIs(t, err, gsas.ErrSize)
	}
	require.ErrorIs(t, m.Read(at, none), gsas.ErrSize)
	require.ErrorIs(t, m.Write(at, none), gsas.ErrSize)
	for _, v := range []runtime.View{big, big.Slice(0, 501)} {
		require.ErrorIs(t, m.Read(at, v), gsas.ErrBounds)
		require.ErrorIs(t, m.Write(at, v), gsas.ErrBounds)
	}
}

// dead checks that every operation refuses a pointer to no allocation.
func dead(t *testing.T, m *gsas.Member, at gsas.Pointer, big, small runtime.View) {
	for _, v := range []runtime.View{big, small} {
		require.ErrorIs(t, m.Read(at, v), gsas.ErrDead)
		require.ErrorIs(t, m.Write(at, v), gsas.ErrDead)
	}
	_, err := m.FetchAdd(at, 1)
	require.ErrorIs(t, err, gsas.ErrDead)
	require.ErrorIs(t, m.Free(at), gsas.ErrDead)
	require.ErrorIs(t, m.Barrier(at), gsas.ErrDead)
}

// Requests of processes of another protection domain are refused and counted,
// even with a valid pointer. Nothing changes.
func TestForeignDomain(t *testing.T) {
	c := newCluster(t, "exanest", 2, 1, gsas.Options{PDID: 7}, still...)
	var at gsas.Pointer
	c.member(0, func(m *gsas.Member) (err error) {
		if at, err = m.Alloc(1, 4096); err != nil {
			return err
		}
		if err := m.Store(at, 99); err != nil {
			return err
		}
		m.Proc().SleepUntil(sim.Millisecond)
		v, err := m.Load(at)
		require.EqualValues(t, 99, v)
		return err
	})
	require.NoError(t, c.Spawn(0, "stranger", func(p *runtime.Proc) error {
		require.NoError(t, c.space.System().Admit(p, 8))
		m, err := c.space.Open(p)
		require.NoError(t, err)
		p.SleepUntil(100 * sim.Microsecond)
		big := p.Alloc(4096)
		_, err = m.FetchAdd(at, 1)
		require.ErrorIs(t, err, gsas.ErrForeign)
		require.ErrorIs(t, m.Read(at, big), gsas.ErrForeign)
		require.ErrorIs(t, m.Write(at, big), gsas.ErrForeign)
		require.ErrorIs(t, m.Free(at), gsas.ErrForeign)
		_, err = m.Alloc(1, 8)
		require.ErrorIs(t, err, gsas.ErrForeign)
		return nil
	}))
	c.run()
	require.EqualValues(t, 5, c.space.Counts(1).Foreign)
	require.EqualValues(t, 4096, c.space.Counts(1).Allocated)
}

// An unreachable home is an error in the end. The operation has happened once
// or not at all.
func TestHomeThatDoesNotAnswer(t *testing.T) {
	impatient := exanet.Options{State: map[string]any{"timeout": 10000, "retries": 3}}
	c := newCluster(t, "exanest", 2, 1, gsas.Options{PDID: 7, Member: impatient},
		append([]string{"fabric.faults.down=[{node: 1, from: 200us, to: 1ms}]"}, still...)...)
	c.member(0, func(m *gsas.Member) error {
		at, err := m.Alloc(1, 8)
		require.NoError(t, err)
		m.Proc().SleepUntil(300 * sim.Microsecond)
		_, err = m.FetchAdd(at, 1)
		require.EqualError(t, err, fmt.Sprintf("gsas: fetch-and-add at %v: nobody has answered", at))
		require.ErrorIs(t, err, gsas.ErrTimedOut)
		m.Proc().SleepUntil(2 * sim.Millisecond)
		v, err := m.FetchAdd(at, 10)
		require.NoError(t, err)
		require.Zero(t, v)
		return nil
	})
	c.run()
}

// Barriers of any number of processes, odd ones too: no process goes on before
// the last has arrived, many times over. Free releases the processes that wait.
func TestBarrier(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 13, 31} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			const nodes, rounds = 4, 5
			c := newCluster(t, "exanest", nodes, 1, gsas.Options{PDID: 7}, still...)
			var barrier, released gsas.Pointer
			var reached [rounds]int
			for i := range n {
				c.member(i%nodes, func(m *gsas.Member) (err error) {
					if i == 0 {
						if barrier, err = m.NewBarrier(nodes-1, n); err != nil {
							return err
						}
						if released, err = m.NewBarrier(0, n+1); err != nil {
							return err
						}
					}
					m.Proc().SleepUntil(sim.Millisecond)
					for r := range rounds {
						m.Proc().Compute(sim.Time((i*7919+r*104729)%50_000) * sim.Nanosecond)
						reached[r]++
						if err := m.Barrier(barrier); err != nil {
							return err
						}
						require.Equal(t, n, reached[r])
					}
					if i > 0 {
						require.ErrorIs(t, m.Barrier(released), gsas.ErrDead)
						return nil
					}
					m.Proc().Sleep(sim.Millisecond)
					return m.Free(released)
				})
			}
			c.run()
		})
	}
}

func TestOptions(t *testing.T) {
	p, err := profile.Load("exanest", still...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
	require.NoError(t, err)
	defer c.Close() //nolint:errcheck // it has not run
	for want, o := range map[string]gsas.Options{
		"heap of 0 bytes":           {},
		"heap of 1073741825 bytes":  {Heap: gsas.MaxHeap + 1},
		"home of node 2, expected":  {Heap: 1, Nodes: []int{2}},
		"home of node -1, expected": {Heap: 1, Nodes: []int{-1}},
		"node 1 has a home":         {Heap: 1, Nodes: []int{1, 1}},
	} {
		_, err := gsas.New(c, o)
		require.ErrorContains(t, err, want)
	}
	for range 8 {
		require.NoError(t, c.Spawn(0, "p", func(*runtime.Proc) error { return nil }))
	}
	_, err = gsas.New(c, gsas.Options{Heap: 1, Nodes: []int{0}})
	require.ErrorContains(t, err, "it would be process 8, and an address tells")
	foreign, err := profile.Load("spin-int")
	require.NoError(t, err)
	other, err := runtime.NewCluster(runtime.Config{Profile: foreign, Nodes: 1})
	require.NoError(t, err)
	defer other.Close() //nolint:errcheck // it has not run
	_, err = gsas.New(other, gsas.Options{Heap: 1})
	require.ErrorContains(t, err, "gsas: exanet: profile spin-int: hpu.dma_write: initiated, expected landed")
}
