package mpi_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// reducers returns profiles and options with which modules compute Allreduce.
func reducers(by mpi.Mode) map[string]mpi.Options {
	list := map[string]mpi.Options{
		"exanest":  mpi.DefaultExaNetOptions(),
		"spin-int": {Matching: mpi.Offload, Eager: 200, Buffers: 4, BufferBytes: 4096},
		"spin-dis": {Matching: mpi.Host, Eager: 200, Buffers: 4, BufferBytes: 4096},
	}
	for name, o := range list {
		o.Allreduce, o.Rooted = by, true
		list[name] = o
	}
	return list
}

// drawReduction makes a trial of what modules do. They take half of the trials.
func drawReduction(seed uint64, i, size, most int) trial {
	tr := draw(seed, i, size, most)
	rng := rand.New(rand.NewPCG(seed, uint64(i)+1<<32))
	tr.what = []string{"allreduce", "allreduce", "reduce", "bcast", "barrier", "allgather", "reducescatter"}[rng.IntN(7)]
	if rng.IntN(2) == 0 {
		tr.op, tr.t = []*mpi.Op{mpi.Sum, mpi.Min, mpi.Max}[rng.IntN(3)], []mpi.Type{mpi.Int32, mpi.Int64, mpi.Float32, mpi.Float64}[rng.IntN(4)]
	}
	tr.n = (tr.n + tr.t.Size() - 1) / tr.t.Size() * tr.t.Size()
	if tr.what == "reducescatter" {
		tr.counts = slices.Repeat([]int{tr.n / 8 / tr.t.Size() * tr.t.Size()}, size)
		if rng.IntN(4) == 0 { // uneven
			tr.counts[rng.IntN(size)] += tr.t.Size()
		}
		tr.n = 0
		for _, n := range tr.counts {
			tr.n += n
		}
	}
	return tr
}

// reductions makes ranks call these, back to back and late, with other
// operations between, on the world and on a part of it.
func reductions(t *testing.T, name string, ranks, trials int, o mpi.Options) *mpi.World {
	o.Ranks = ranks
	w := worldOf(t, name, o)
	defer func() { require.NoError(t, w.Cluster().Close()) }()
	known := newKnown()
	most := 1200
	if ranks > 40 {
		most = 300
	}
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			half := 0
			if rank >= ranks/2/4*4 {
				half = 1
			}
			part, err := r.World().Split(half, rank)
			if err != nil {
				return err
			}
			rng := rand.New(rand.NewPCG(uint64(ranks), uint64(rank)))
			for i := range trials {
				for _, c := range []*mpi.Comm{r.World(), part} {
					group := half
					if c == r.World() {
						group = 3
					}
					if rng.IntN(3) == 0 {
						r.Compute(sim.Time(rng.IntN(20)) * sim.Microsecond)
					}
					tr := drawReduction(uint64(ranks*4+group), i, c.Size(), most)
					if i%5 == 4 {
						tr = draw(uint64(ranks*4+group), i, c.Size(), most)
					}
					if err := attempt(c, tr, known.of(group, i, c.Size(), tr)); err != nil {
						return fmt.Errorf("%s, %s, %d ranks, rank %d of %d, trial %d (%s, %d B, %v of %v, in place %v, request %v): %w",
							name, o.Allreduce, ranks, c.Rank(), c.Size(), i, tr.what, tr.n, tr.op, tr.t, tr.inPlace, tr.later, err)
					}
				}
			}
			return part.Free()
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	return w
}

// Calls by modules of the NIC give every rank the result of a loop over all ranks,
// for any number of ranks, on any device, and among other messages.
// Processes compute what modules do not take, and the reasons are counted.
func TestModules(t *testing.T) {
	ranks := []int{1, 3, 8, 16}
	if *stormRanks {
		ranks = []int{64, 128, 512}
		for n := 1; n <= 40; n++ {
			ranks = append(ranks, n)
		}
	}
	for _, by := range mpi.AllreduceChoices()[1:] {
		for name, o := range reducers(by) {
			t.Run(fmt.Sprintf("%s/%s", by, name), func(t *testing.T) {
				for _, n := range ranks {
					if name == "exanest" && n > 128 {
						o.PerNode = 4
					}
					w := reductions(t, name, n, 10, o)
					s, why := w.Stats(), w.Fallbacks()
					if n > 1 {
						require.Positive(t, s.Offloaded+s.FellBack)
						require.NotEmpty(t, why)
					}
					boards := by == mpi.ModeAccelerator || by == mpi.ModeBoards
					if n > 1 && (!boards || n%4 == 0 && (by == mpi.ModeBoards || name == "exanest" && o.PerNode <= 1)) {
						require.Positive(t, s.Offloaded, "%d ranks: %v", n, why)
					}
					if by == mpi.ModeAccelerator && name != "exanest" {
						require.Zero(t, s.Offloaded)
					}
					calls := int64(0)
					for _, f := range why {
						calls += f.Calls
					}
					require.Equal(t, s.FellBack, calls)
				}
			})
		}
	}
}

// The reasons why processes compute calls that the accelerator does not take.
func TestFallbacks(t *testing.T) {
	type call struct {
		bytes int
		t     mpi.Type
		op    *mpi.Op
	}
	for _, c := range []struct {
		name    string
		ranks   int
		perNode int
		call    call
		why     string
	}{
		{"exanest", 8, 1, call{4096, mpi.Float32, mpi.Sum}, ""},
		{"exanest", 8, 1, call{8, mpi.Int64, mpi.Sum}, "type int64"},
		{"exanest", 8, 1, call{8, mpi.Int32, mpi.BXor}, "operation bxor"},
		{"exanest", 6, 1, call{8, mpi.Int32, mpi.Min}, "no whole QFDBs: 6 ranks"},
		{"exanest", 8, 2, call{8, mpi.Int32, mpi.Min}, "ranks do not fill QFDBs in order, one on each MPSoC"},
		{"spin-int", 8, 1, call{8, mpi.Int32, mpi.Min}, "the device has no accelerator (serve.allreduce)"},
		{"exanest 8x8x5", 1028, 1, call{8, mpi.Int32, mpi.Min}, "1028 ranks, at most 1024"},
	} {
		o := mpi.DefaultExaNetOptions()
		if c.name == "spin-int" {
			o = mpi.DefaultOptions(mpi.Host)
		}
		o.Ranks, o.PerNode, o.Allreduce = c.ranks, c.perNode, mpi.ModeAccelerator
		var set []string
		name := c.name
		if name == "exanest 8x8x5" {
			name, set = "exanest", []string{"fabric.dims=[8, 8, 5]"}
		}
		p, err := profile.Load(name, set...)
		require.NoError(t, err)
		cluster, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: o.Nodes(c.ranks)})
		require.NoError(t, err)
		w, err := mpi.New(cluster, o)
		require.NoError(t, err)
		for rank := range c.ranks {
			require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
				v, err := r.Alloc(c.call.bytes)
				if err != nil {
					return err
				}
				return r.World().Allreduce(mpi.InPlace, v, c.call.t, c.call.op)
			}))
		}
		require.NoError(t, w.Run(context.Background()))
		s := w.Stats()
		if c.why == "" {
			require.Empty(t, w.Fallbacks())
			require.EqualValues(t, c.ranks, s.Offloaded)
			require.Zero(t, s.Sent, "processes sent messages")
		} else {
			require.Equal(t, []mpi.Fallback{{Why: c.why, Calls: int64(c.ranks)}}, w.Fallbacks())
			require.Zero(t, s.Offloaded)
		}
		require.NoError(t, cluster.Close())
	}
}

// While a rank waits for a module, its messages make progress. Otherwise a
// message that waits for its receive would hold up a rank that has not called
// yet.
func TestModulesAndMessages(t *testing.T) {
	for name, o := range reducers(mpi.ModeDoubling) {
		o.Ranks = 4
		w := worldOf(t, name, o)
		for rank := range 4 {
			require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
				big, err := r.Alloc(10000)
				if err != nil {
					return err
				}
				v, err := r.Alloc(4096)
				if err != nil {
					return err
				}
				c := r.World()
				var q, sums [2]*mpi.Request
				if rank == 0 {
					if q[0], err = c.Irecv(big, 1, 7); err != nil {
						return err
					}
				}
				if rank == 1 {
					r.Compute(50 * sim.Microsecond)
					big.Write()[9999] = 42
					if err := c.Send(big, 0, 7); err != nil { // rank 0 is waiting for its module
						return err
					}
				}
				binary.LittleEndian.PutUint32(v.Write(), uint32(rank))
				if err := c.Allreduce(mpi.InPlace, v, mpi.Int32, mpi.Sum); err != nil {
					return err
				}
				require.EqualValues(t, 6, binary.LittleEndian.Uint32(v.Read()))
				for i := range sums { // two calls at once, on one module
					if sums[i], err = c.Start(mpi.Allreduce{Recv: v.Slice(2048*i, 2048*i+1024), Type: mpi.Int32, Op: mpi.Max}); err != nil {
						return err
					}
				}
				if err := r.WaitAll(sums[:], nil); err != nil {
					return err
				}
				if q[0] != nil {
					_, err = r.Wait(q[0])
					require.EqualValues(t, 42, big.Read()[9999])
				}
				return err
			}))
		}
		require.NoError(t, w.Run(context.Background()))
		require.NoError(t, w.Cluster().Close())
	}
}

// Sums that round have the bits that the package documentation promises.
// Recursive doubling gives the bits of the processes; boards add each board
// first.
func TestOrderOfModules(t *testing.T) {
	const n = 100
	for _, by := range mpi.AllreduceChoices()[1:] {
		for _, ranks := range []int{4, 6, 12, 20, 23} {
			if (by == mpi.ModeAccelerator || by == mpi.ModeBoards) && ranks%4 != 0 {
				continue
			}
			x := make([][]float64, n)
			rng := rand.New(rand.NewPCG(uint64(ranks), 9))
			for i := range x {
				for range ranks {
					x[i] = append(x[i], rng.NormFloat64()*math.Exp(10*rng.NormFloat64()))
				}
			}
			o := mpi.DefaultExaNetOptions()
			o.Ranks, o.Allreduce = ranks, by
			w := worldOf(t, "exanest", o)
			var want []uint64 // of all ranks, from the tree that the first of them was in
			for rank := range ranks {
				require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
					v, err := r.Alloc(8 * n)
					if err != nil {
						return err
					}
					for i, b := 0, v.Write(); i < n; i++ {
						binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x[i][rank]))
					}
					if err := r.World().Allreduce(mpi.InPlace, v, mpi.Float64, mpi.Sum); err != nil {
						return err
					}
					for i := len(want); i < n; i++ {
						want = append(want, math.Float64bits(moduleSum(w, x[i], i*8/256)))
					}
					for i, b := 0, v.Read(); i < n; i++ {
						require.Equal(t, want[i], binary.LittleEndian.Uint64(b[8*i:]), "%s, %d ranks, element %d", by, ranks, i)
					}
					return nil
				}))
			}
			require.NoError(t, w.Run(context.Background()))
			require.EqualValues(t, ranks, w.Stats().Offloaded)
			require.NoError(t, w.Cluster().Close())
		}
	}
}

// moduleSum returns the sum of the ranks' elements in block b of a vector.
func moduleSum(w *mpi.World, x []float64, b int) float64 {
	sum := func(x []float64) float64 {
		s := x[0]
		for _, v := range x[1:] {
			s += v
		}
		return s
	}
	switch w.Options().Allreduce {
	case mpi.ModeTree, mpi.ModeSwitch:
		return treeSum(treeOf(w, len(x)), 0, x)
	case mpi.ModeDoubling:
		return balanced(folded(x))
	case mpi.ModeRing:
		first := (b + 1) % len(x)
		return sum(append(append([]float64{}, x[first:]...), x[:first]...))
	}
	var boards []float64
	for i := 0; i < len(x); i += 4 {
		boards = append(boards, sum(x[i:i+4]))
	}
	return balanced(folded(boards))
}

// treeOf is the tree of the world.
func treeOf(w *mpi.World, ranks int) reduction.Tree {
	var places []portals.ID
	for rank := range ranks {
		places = append(places, w.Place(rank))
	}
	tree, err := reduction.NICs(places, 2)
	if w.Options().Allreduce == mpi.ModeSwitch {
		tree, err = reduction.Switches(w.Cluster(), places, 0)
	}
	if err != nil {
		panic(err)
	}
	return tree
}

// treeSum is the sum below an aggregator, in the order of its children.
func treeSum(t reduction.Tree, at int, x []float64) (sum float64) {
	for i, c := range t[at].Children {
		var v float64
		if v = x[c.Number%len(x)]; c.Inner {
			v = treeSum(t, c.Number, x)
		}
		if i == 0 {
			sum = v
		} else {
			sum += v
		}
	}
	return sum
}

// A lost vector ends the run. The error names it and the ranks that wait, with
// their calls. With an end-to-end transport the vector is sent again.
func TestModulesLose(t *testing.T) {
	for _, reliable := range []bool{false, true} {
		set := []string{"fabric.faults={loss: 0.2}"}
		if reliable {
			set = append(set, "transport.kind=reliable", "transport.retries=100", "transport.timeout=50us")
		}
		o := mpi.DefaultExaNetOptions()
		o.Allreduce = mpi.ModeAccelerator
		w := exanetWorld(t, t.Cleanup, 16, o, runtime.Config{Seed: 3}, append(set, allThere...)...)
		for rank := range 16 {
			require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
				v, err := r.Alloc(64)
				if err != nil {
					return err
				}
				return r.World().Allreduce(mpi.InPlace, v, mpi.Int32, mpi.Sum)
			}))
		}
		err := w.Run(context.Background())
		if reliable {
			require.NoError(t, err)
			continue
		}
		// the cause, then the waiting rank with its call, then the wait that
		// the simulator sees
		require.Regexp(t, `(?s)^\d+ messages were lost, the first: .* \(loss, fabric.faults\).*`+
			`waits in Allreduce of 64 B \(sum of int32\) on world, its call 1 there.*nothing left to happen at .*still wait`, err.Error())
	}
}

// After a warm-up, accelerated calls allocate nothing.
func TestModulesAllocateNothing(t *testing.T) {
	for _, by := range mpi.AllreduceChoices()[1:] {
		for name, o := range reducers(by) {
			const warm, rounds, ranks = 300, 200, 8 // a tree has up to 256 counters
			o.Ranks = ranks
			w := worldOf(t, name, o)
			var before, after goruntime.MemStats
			for rank := range ranks {
				require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
					v, err := r.Alloc(600)
					if err != nil {
						return err
					}
					for i := range warm + rounds {
						if i == warm && rank == 0 {
							goruntime.ReadMemStats(&before)
						}
						if err := r.World().Allreduce(mpi.InPlace, v, mpi.Float64, mpi.Max); err != nil {
							return err
						}
					}
					if rank == 0 {
						goruntime.ReadMemStats(&after)
					}
					return nil
				}))
			}
			require.NoError(t, w.Run(context.Background()))
			require.NoError(t, w.Cluster().Close())
			if by == mpi.ModeAccelerator && name != "exanest" || poison.On {
				continue // processes compute, or the tag invariants stops reuse
			}
			require.Less(t, after.Mallocs-before.Mallocs, uint64(rounds/2), "%s on %s", by, name)
		}
	}
}
