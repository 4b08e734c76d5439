package mpi_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// grid is the rows and the columns of ranks, the columns from below, and a group of
// one.
func grid(rows, columns int) (groups [][]int) {
	for r := range rows {
		var row []int
		for c := range columns {
			row = append(row, r*columns+c)
		}
		groups = append(groups, row)
	}
	for c := range columns {
		var column []int
		for r := range rows {
			column = append(column, (rows-1-r)*columns+c)
		}
		groups = append(groups, column)
	}
	return append(groups, []int{3})
}

// Groups are communicators from the beginning, in their order, and every mode adds
// their vectors, several at a time, at the same times on several cores.
func TestGroups(t *testing.T) {
	const rows, columns = 3, 4
	groups := grid(rows, columns)
	for _, mode := range mpi.AllreduceChoices() {
		var ends [][]sim.Time
		for cores := 1; cores <= 3; cores++ {
			o := mpi.DefaultOptions(mpi.Host)
			o.Allreduce, o.Ranks, o.Groups = mode, rows*columns, groups
			set := []string{"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=5", "fabric.spines=2", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}"}
			w := worldWith(t, t.Cleanup, "spin-dis", o.Ranks, o, runtime.Config{Cores: cores}, set...)
			times := make([]sim.Time, o.Ranks)
			for rank := range o.Ranks {
				require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
					err := addInGroups(r, groups)
					times[rank] = r.Now()
					return err
				}))
			}
			require.NoError(t, w.Run(context.Background()))
			ends = append(ends, times)
			const calls = int64(3 * (rows*columns + rows*columns*2)) // the world, a row and a column
			if mode == mpi.ModeAccelerator {
				require.Zero(t, w.Stats().Offloaded)
			} else if mode == mpi.ModeTree || mode == mpi.ModeSwitch {
				require.Equal(t, calls-3*rows*columns, w.Stats().Offloaded, mode)
				require.Equal(t, []mpi.Fallback{{Why: "groups have trees, and the world has none", Calls: 3 * rows * columns}}, w.Fallbacks())
			} else if mode != mpi.ModeHost && mode != mpi.ModeBoards {
				require.Equal(t, calls, w.Stats().Offloaded, mode)
				require.Empty(t, w.Fallbacks())
			}
		}
		require.Equal(t, [][]sim.Time{ends[0], ends[0], ends[0]}, ends, mode)
	}
}

// addInGroups adds vectors in all communicators of a rank at the same time.
func addInGroups(r *mpi.Rank, groups [][]int) error {
	comms, members := []*mpi.Comm{r.World()}, [][]int{nil}
	for rank := range r.Size() {
		members[0] = append(members[0], rank)
	}
	for i, of := range groups {
		if c := mpi.GroupOf(r, i); c != nil {
			if c.Translate(c.Rank()) != r.Rank() || c.Size() != len(of) {
				return fmt.Errorf("rank %d is %d of group %d", r.Rank(), c.Rank(), i)
			}
			comms, members = append(comms, c), append(members, of)
		}
	}
	for call := range 3 {
		requests, vectors := make([]*mpi.Request, len(comms)), make([]runtime.View, len(comms))
		for i, c := range comms {
			v, err := r.Alloc(40_000 * (i + 1))
			if err != nil {
				return err
			}
			for b := v.Write(); len(b) > 0; b = b[4:] {
				binary.LittleEndian.PutUint32(b, uint32(r.Rank()+call))
			}
			vectors[i] = v
			if requests[i], err = c.Start(mpi.Allreduce{Send: mpi.InPlace, Recv: v, Type: mpi.Int32, Op: mpi.Sum}); err != nil {
				return err
			}
		}
		if err := r.WaitAll(requests, nil); err != nil {
			return err
		}
		for i, v := range vectors {
			want := 0
			for _, rank := range members[i] {
				want += rank + call
			}
			for b := v.Read(); len(b) > 0; b = b[4:] {
				if got := binary.LittleEndian.Uint32(b); got != uint32(want) {
					return fmt.Errorf("rank %d, communicator %d: %d, expected %d", r.Rank(), i, got, want)
				}
			}
		}
	}
	return nil
}

// What a tree cannot do says so: communicators that ranks make later are computed
// by processes, and one with a tree stays.
func TestTreesAreMadeBefore(t *testing.T) {
	for _, mode := range []mpi.Mode{mpi.ModeTree, mpi.ModeSwitch, mpi.ModeDoubling} {
		o := mpi.DefaultOptions(mpi.Host)
		o.Allreduce, o.Ranks, o.Groups = mode, 4, [][]int{{0, 1, 2}}
		w := worldOf(t, "spin-dis", o)
		for rank := range 4 {
			require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
				late, err := r.World().Dup()
				if err != nil {
					return err
				}
				v, err := r.Alloc(8)
				if err != nil {
					return err
				}
				if err := late.Allreduce(mpi.InPlace, v, mpi.Int64, mpi.Max); err != nil {
					return err
				}
				require.ErrorContains(t, r.World().Free(), "cannot be freed")
				c := mpi.GroupOf(r, 0)
				switch {
				case rank == 3:
					require.Nil(t, c)
				case mode == mpi.ModeDoubling:
					require.NoError(t, c.Free())
					require.Nil(t, mpi.GroupOf(r, 0))
				default:
					require.EqualError(t, c.Free(), fmt.Sprintf("mpi: rank %d: communicator group0 is there for the whole run, and cannot be freed", rank))
				}
				return late.Free()
			}))
		}
		require.NoError(t, w.Run(context.Background()))
		if mode == mpi.ModeDoubling {
			require.Empty(t, w.Fallbacks())
		} else {
			require.Equal(t, []mpi.Fallback{{Why: "a communicator that was made during the run has no tree", Calls: 4}}, w.Fallbacks())
		}
		require.NoError(t, w.Cluster().Close())
	}
}

// Wrong groups, and switches without units, are errors before anything runs.
func TestWrongGroups(t *testing.T) {
	made := func(mode mpi.Mode, groups ...[]int) error {
		o := mpi.DefaultOptions(mpi.Host)
		o.Allreduce, o.Groups = mode, groups
		p, err := profile.Load("spin-dis")
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 3})
		require.NoError(t, err)
		_, err = mpi.New(c, o)
		require.NoError(t, c.Close())
		return err
	}
	require.NoError(t, made("", []int{0, 2}, []int{2, 1, 0}))
	require.EqualError(t, made("", []int{0, 1}, []int{0, 3}), "mpi: group 1: rank 3, expected each of its ranks once, 0 to 2")
	require.EqualError(t, made("", []int{1, 1}), "mpi: group 0: rank 1, expected each of its ranks once, 0 to 2")
	require.EqualError(t, made("", []int{-1}), "mpi: group 0: rank -1, expected each of its ranks once, 0 to 2")
	require.EqualError(t, made("", []int{}), "mpi: group 0: no ranks")
	var many [][]int
	for range 2048 {
		many = append(many, []int{1})
	}
	require.EqualError(t, made("", many...), "mpi: group 2047: one of its ranks has 2047 others, expected fewer than 2047")
	require.NoError(t, made("", many[1:]...))
	require.EqualError(t, made(mpi.ModeSwitch), "mpi: allreduce by switches: no switch of the network has a unit: expected fabric.units")
}
