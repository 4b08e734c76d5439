package mpi_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

var stormRanks = flag.Bool("collectives.all", false, "every number of ranks from 1 to 40, and 64, 128 and 512, on every profile: the promise")

type trial struct {
	what    string
	root    int
	n       int   // bytes of a block or a vector
	counts  []int // of the blocks, in calls with lengths
	places  []int
	matrix  [][]int // Alltoallv: bytes from i to j
	t       mpi.Type
	op      *mpi.Op
	inPlace bool
	later   bool // the form with a request
	seed    uint64
}

var whats = []string{
	"barrier", "bcast", "scatter", "scatterv", "gather", "gatherv", "allgather", "allgatherv", "alltoall", "alltoallv", "reduce", "allreduce",
	"reducescatter", "scan", "exscan",
}

// draw makes trial i of a communicator, the same at all its ranks.
func draw(seed uint64, i, size, most int) trial {
	rng := rand.New(rand.NewPCG(seed, uint64(i)))
	t := trial{what: whats[(i+int(seed))%len(whats)], root: rng.IntN(size), inPlace: rng.IntN(3) == 0, later: rng.IntN(2) == 0, seed: rng.Uint64()}
	lengths := []int{0, 1, 7, 16, 33, 100, 300, most}
	length := func() int { return lengths[rng.IntN(len(lengths))] }
	t.n = length()
	t.op, t.t = drawOp(rng)
	switch t.what {
	case "reduce", "allreduce", "scan", "exscan":
		t.n = (t.n + t.t.Size() - 1) / t.t.Size() * t.t.Size() * (1 + 3*rng.IntN(2))
	case "reducescatter":
		t.counts, _ = drawBlocks(rng, size, func() int { return length() / 8 * t.t.Size() })
		t.n = 0
		for _, c := range t.counts {
			t.n += c
		}
	case "alltoallv":
		t.matrix = make([][]int, size)
		for j := range t.matrix {
			t.matrix[j] = make([]int, size)
			for k := range t.matrix[j] {
				t.matrix[j][k] = length() / 4
			}
		}
		for j := range size {
			for k := range j {
				if t.inPlace {
					t.matrix[j][k] = t.matrix[k][j]
				}
			}
		}
	case "scatterv", "gatherv", "allgatherv":
		t.counts, t.places = drawBlocks(rng, size, length)
	}
	return t
}

// drawBlocks draws lengths of blocks and their places: any order, with holes.
func drawBlocks(rng *rand.Rand, size int, length func() int) (counts, places []int) {
	counts, places = make([]int, size), make([]int, size)
	at := 0
	for _, i := range rng.Perm(size) {
		counts[i] = length()
		at += rng.IntN(3)
		places[i] = at
		at += counts[i]
	}
	return counts, places
}

// compose does not commute: it composes functions x -> ax+b modulo 2^32.
var compose = mpi.NewOp("compose", false, func(dst, left, right []byte) {
	for i := 0; i+8 <= len(dst); i += 8 {
		a, b := word(left[i:]), word(left[i+4:])
		c, d := word(right[i:]), word(right[i+4:])
		setWord(dst[i:], a*c)
		setWord(dst[i+4:], b*c+d)
	}
})

// longest keeps the larger of two elements of 5 bytes. It is an operation of
// the program that commutes.
var longest = mpi.NewOp("longest", true, func(dst, left, right []byte) {
	for i := 0; i+5 <= len(dst); i += 5 {
		larger := left[i : i+5]
		if bytes.Compare(larger, right[i:i+5]) < 0 {
			larger = right[i : i+5]
		}
		copy(dst[i:], larger)
	}
})

func drawOp(rng *rand.Rand) (*mpi.Op, mpi.Type) {
	pair, err := mpi.NewType("pair", 8)
	if err != nil {
		panic(err)
	}
	five, err := mpi.NewType("five", 5)
	if err != nil {
		panic(err)
	}
	switch rng.IntN(6) {
	case 0, 3:
		return compose, pair
	case 1:
		return longest, five
	case 2:
		return mpi.Ops()[rng.IntN(4)], []mpi.Type{mpi.Float32, mpi.Float64}[rng.IntN(2)]
	}
	return mpi.Ops()[rng.IntN(len(mpi.Ops()))], []mpi.Type{mpi.Int32, mpi.Int64}[rng.IntN(2)]
}

// memory is a rank's memory for a trial, between margins that must not change.
type memory struct {
	all  runtime.View
	data runtime.View
}

const margin = 24

func (m *memory) alloc(r *mpi.Rank, n int, contents []byte) (err error) {
	if m.all, err = r.Alloc(n + 2*margin); err != nil {
		return err
	}
	b := m.all.Write()
	for i := range b {
		b[i] = 0xa5
	}
	m.data = m.all.Slice(margin, margin+n)
	m.data.CopyFrom(contents)
	return nil
}

func (m *memory) holds(want []byte) error {
	b := slices.Clone(m.all.Read())
	around := bytes.Repeat([]byte{0xa5}, margin)
	if got := b[margin : len(b)-margin]; !bytes.Equal(got, want) {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		return fmt.Errorf("%d B differ from %d B expected, first at %d", len(got), len(want), i)
	}
	if !bytes.Equal(b[:margin], around) || !bytes.Equal(b[len(b)-margin:], around) {
		return fmt.Errorf("the bytes around the memory have changed")
	}
	return nil
}

// attempt runs a trial at a rank and checks the rank's memory.
func attempt(c *mpi.Comm, t trial, want *expectation) error {
	me, r := c.Rank(), c.Owner()
	in, out := want.in[me], want.out[me]
	before := bytes.Repeat([]byte{0x5a}, len(out))
	if t.inPlace {
		copy(before, want.inPlace[me])
	}
	var send, recv memory
	if err := send.alloc(r, len(in), in); err != nil {
		return err
	}
	if err := recv.alloc(r, len(out), before); err != nil {
		return err
	}
	s := send.data
	if t.inPlace && want.mayReplace(t, me) {
		s = mpi.InPlace
	} else if t.inPlace {
		recv.data.CopyFrom(bytes.Repeat([]byte{0x5a}, len(out)))
	}
	q, err := invoke(c, t, s, recv.data)
	if err != nil {
		return err
	}
	if q != nil {
		if _, err := r.Wait(q); err != nil {
			return err
		}
	}
	if err := send.holds(in); err != nil {
		return fmt.Errorf("what is sent: %w", err)
	}
	switch {
	case t.what == "exscan" && me == 0: // the result is not defined
		out = recv.data.Snapshot()
	case t.what == "reducescatter" && t.inPlace: // the rest of recv is not defined
		out = append(bytes.Clone(out[:t.counts[me]]), recv.data.Snapshot()[t.counts[me]:]...)
	}
	return recv.holds(out)
}

// Every collective operation leaves at every rank the result of a loop over all
// ranks, and changes nothing else. Lengths, roots, types and operations are
// random; calls are in place and not, blocking and not, on the world and on a
// part of it.
func TestCollectives(t *testing.T) {
	ranks := []int{1, 2, 5, 8, 13}
	large := []int{37}
	trials := 12
	if *stormRanks {
		ranks, large, trials = nil, []int{64, 128, 512}, 45
		for n := 1; n <= 40; n++ {
			ranks = append(ranks, n)
		}
	} else if testing.Short() {
		large = nil
	}
	for _, name := range []string{"spin-int", "exanest-qfdb"} {
		for _, o := range transports(name) {
			for _, algorithms := range mpi.AlgorithmChoices() {
				o.Algorithms = algorithms
				t.Run(fmt.Sprintf("%s/%s/%s/%s", name, o.Transport, o.Matching, algorithms), func(t *testing.T) {
					for _, n := range ranks {
						collectives(t, name, n, trials, o)
					}
					if algorithms == mpi.ExaNetMPI && !*stormRanks {
						return
					}
					for _, n := range large {
						collectives(t, strings.TrimSuffix(name, "-qfdb"), n, 15, o)
					}
				})
			}
		}
	}
}

// transports returns the transports and forms for a profile.
// TestExaNetCollectives covers ExaNet in short runs.
func transports(name string) []mpi.Options {
	list := []mpi.Options{{Transport: mpi.Portals, Matching: mpi.Host}, {Transport: mpi.Portals, Matching: mpi.Offload}}
	if name == "exanest-qfdb" && *stormRanks {
		list = append(list, mpi.DefaultExaNetOptions())
	}
	return list
}

// Messages just below and above every size at which MPICH 3.2.1 changes its
// algorithm, with numbers of ranks that are a power of two and that are not.
func TestSwitchPoints(t *testing.T) {
	var list []trial
	add := func(tr trial, sizes ...int) {
		for _, n := range sizes {
			tr.n, tr.seed, tr.later = n, uint64(len(list)), !tr.later
			// both ranks odd: fold moves some of their vectors to a neighbour
			tr.inPlace, tr.root = !tr.inPlace, 1+len(list)%2*2
			list = append(list, tr)
		}
	}
	sum := trial{t: mpi.Int32, op: mpi.Sum}
	with := func(what string) trial {
		tr := sum
		tr.what = what
		return tr
	}
	add(with("bcast"), 12287, 12288, 12290, 524287, 524288)
	add(with("allgather"), 6800, 8192, 10240, 65535, 65536)
	add(with("alltoall"), 256, 257, 32768, 32769)
	add(with("gather"), 1023, 1024)
	add(with("scatter"), 1023, 1024)
	add(with("reduce"), 2048, 2052, 65540)
	add(with("allreduce"), 2048, 2052, 65540)
	add(with("scan"), 4096)
	// a quarter of the bytes at rank 2, none at rank 4
	for _, n := range []int{6800, 10240, 40000, 65536, 90000} {
		for _, what := range []string{"allgatherv", "reducescatter"} {
			for _, inPlace := range []bool{false, true} {
				tr := with(what)
				tr.n, tr.seed, tr.inPlace = -n, uint64(len(list)), inPlace
				list = append(list, tr)
			}
		}
	}
	switchPoints(t, 9, mpi.MPICH, list)
	if !testing.Short() {
		switchPoints(t, 9, mpi.ExaNetMPI, list)
	}
	if *stormRanks {
		switchPoints(t, 8, mpi.MPICH, list)
		switchPoints(t, 12, mpi.MPICH, list)
	}
}

func switchPoints(t *testing.T, ranks int, algorithms mpi.Algorithms, list []trial) {
	w := worldOf(t, "spin-int", mpi.Options{Matching: mpi.Offload, Eager: 16 << 10, Buffers: 4, BufferBytes: 256 << 10, Algorithms: algorithms, Ranks: ranks})
	defer func() { require.NoError(t, w.Cluster().Close()) }()
	list = slices.Clone(list)
	known := newKnown()
	for i := range list {
		tr := &list[i]
		if n := -tr.n; n > 0 {
			tr.counts, tr.n = slices.Repeat([]int{n}, ranks), 0
			tr.counts[2], tr.counts[4] = n/4/4*4, 0
			tr.places = make([]int, ranks)
			for j, c := range tr.counts {
				tr.places[j] = tr.n
				tr.n += c
			}
		}
		known.of(0, i, ranks, *tr)
	}
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			for i, tr := range list {
				if err := attempt(r.World(), tr, known.of(0, i, ranks, tr)); err != nil {
					return fmt.Errorf("%d ranks, %s, rank %d, %s of %d B: %w", ranks, algorithms, rank, tr.what, tr.n, err)
				}
			}
			return nil
		}))
	}
	require.NoError(t, w.Run(context.Background()))
}

// worldOf returns a world on a profile without changes. The caller closes its
// cluster.
func worldOf(t *testing.T, name string, o mpi.Options) *mpi.World {
	// no cleanup: the caller closes the cluster
	var set []string
	if o.Allreduce == mpi.ModeSwitch {
		set = []string{"fabric.units={at: all, rate: 1ps/B, wire: 1ns}"}
	}
	return worldWith(t, func(func()) {}, name, o.Ranks, o, runtime.Config{}, set...)
}

func collectives(t *testing.T, name string, ranks, trials int, o mpi.Options) {
	seed := uint64(ranks)
	if o.Transport == mpi.Portals {
		o.Eager, o.Buffers, o.BufferBytes = 200, 4, 4096
	}
	o.Ranks = ranks
	o.PerNode = 1 + ranks%4
	switch name { // they have 16 and 128 nodes
	case "exanest-qfdb":
		o.PerNode = max(o.PerNode, (ranks+15)/16)
	case "exanest":
		o.PerNode = 4
	}
	w := worldOf(t, name, o)
	defer func() { require.NoError(t, w.Cluster().Close()) }()
	known := newKnown()
	most := 3000
	if ranks > 40 {
		most = 400
	}
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			part, err := r.World().Split(rank%3, -rank)
			if err != nil {
				return err
			}
			for i := range trials {
				for _, c := range []*mpi.Comm{r.World(), part} {
					// Either all ranks of a communicator are in one part, or
					// none.
					group := rank % 3
					if c == r.World() {
						group = 3
					}
					tr := draw(seed*4+uint64(group), i, c.Size(), most)
					if err := attempt(c, tr, known.of(group, i, c.Size(), tr)); err != nil {
						return fmt.Errorf("%s, %d ranks, rank %d of %d, trial %d (%s, root %d, %d B, %v of %v, in place %v, request %v): %w",
							name, ranks, c.Rank(), c.Size(), i, tr.what, tr.root, tr.n, tr.op, tr.t, tr.inPlace, tr.later, err)
					}
				}
			}
			return part.Free()
		}))
	}
	require.NoError(t, w.Run(context.Background()))
}
