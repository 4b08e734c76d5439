package mpi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/internal/typetest"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

var typedCollectives = flag.Int("typed.collectives", 12, "random collective operations with datatypes on each transport")

type lot struct {
	at, count int
	kind      *datatype.Type
}

// trade is a random collective operation: each rank's memory before, and the
// calls.
type trade struct {
	what       string
	root       int
	size       int
	inPlace    bool
	starts     bool // the form that returns a request
	send, recv []lot
	sends      [][]int // counts and places of blocks in elements, by rank
	sendPlaces [][]int
	recvs      [][]int
	recvPlaces [][]int
	before     [][2][]byte // by rank: the memory to send from and to receive into
}

const typedRoom = 1 << 15

// shape draws elements with n times the basic elements of base, in one of
// several ways. They share no byte, even if many follow each other.
func shape(rt *rapid.T, base *datatype.Type, n, blocks int) lot {
	d := divisors(n)[rapid.IntRange(0, len(divisors(n))-1).Draw(rt, "divisor")]
	var made *datatype.Type
	var err error
	switch rapid.IntRange(0, 4).Draw(rt, "shape") {
	case 0:
		made, err = datatype.Contiguous(d, base)
	case 1:
		made, err = datatype.Vector(d, 1, rapid.IntRange(1, 3).Draw(rt, "stride"), base)
	case 2:
		lengths, places := make([]int, d), make([]int, d)
		for i := range d {
			lengths[i], places[i] = 1, d-1-i // backwards
		}
		made, err = datatype.Indexed(lengths, places, base)
	case 3:
		if made, err = datatype.Contiguous(d, base); err == nil {
			lb, extent := made.Extent()
			made, err = datatype.Resized(made, lb, extent+int64(rapid.IntRange(0, 9).Draw(rt, "gap")))
		}
	default:
		if made, err = datatype.Contiguous(d, base); err == nil {
			made, err = datatype.Dup(made)
		}
	}
	require.NoError(rt, err)
	p := lot{count: 0, kind: made}
	if d > 0 {
		p.count = n / d
	}
	low, high := typetest.Reach(made, p.count*blocks)
	overlaps, err := made.Overlaps(max(p.count*blocks, 1))
	require.NoError(rt, err)
	if overlaps || high-low > typedRoom/4 {
		p.kind, p.count = base, n
	}
	return p
}

func divisors(n int) (list []int) {
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			list = append(list, d)
		}
	}
	if n == 0 {
		return []int{0, 1, 3}
	}
	return list
}

// drawBase draws a type whose elements share no byte when they follow each
// other.
func drawBase(rt *rapid.T, elements int) *datatype.Type {
	return rapid.Custom(func(rt *rapid.T) *datatype.Type { return typetest.Draw(rt, 2) }).Filter(func(d *datatype.Type) bool {
		overlaps, err := d.Overlaps(elements)
		low, high := typetest.Reach(d, elements)
		_, extent := d.Extent()
		return err == nil && !overlaps && d.Size() > 0 && extent > 0 && high-low < typedRoom/4
	}).Draw(rt, "base")
}

// place sets at so that all blocks, one behind the other, are within a rank's
// memory.
func (p *lot) place(blocks int) {
	low, _ := typetest.Reach(p.kind, p.count*blocks)
	p.at = int(-low) + 5
}

func (p *lot) block(i int) lot {
	_, extent := p.kind.Extent()
	return lot{p.at + i*p.count*int(extent), p.count, p.kind}
}

// bytes packs the elements from memory.
func (p lot) bytes(t require.TestingT, memory []byte) []byte {
	b := make([]byte, int(p.kind.Size())*p.count)
	require.NoError(t, p.kind.Pack(b, memory, p.at, p.count))
	return b
}

var alikeCalls = []string{"bcast", "scatter", "gather", "allgather", "alltoall", "reduce"}

func drawAlike(rt *rapid.T, size int) *trade {
	w := &trade{what: rapid.SampledFrom(alikeCalls).Draw(rt, "call"), size: size, root: rapid.IntRange(0, size-1).Draw(rt, "root")}
	w.inPlace, w.starts = w.what != "bcast" && rapid.Bool().Draw(rt, "in place"), rapid.Bool().Draw(rt, "starts")
	n := rapid.SampledFrom([]int{0, 1, 2, 6, 12}).Draw(rt, "elements")
	base := datatype.Int32
	if w.what != "reduce" {
		base = drawBase(rt, 12*size)
	}
	for rank := range size {
		in, out := 1, 1
		switch w.what {
		case "scatter":
			out = size
		case "gather", "allgather":
			in = size
		case "alltoall":
			in, out = size, size
		}
		send, recv := shape(rt, base, n, out), shape(rt, base, n, in)
		send.place(out)
		recv.place(in)
		w.send, w.recv = append(w.send, send), append(w.recv, recv)
		w.before = append(w.before, memories(rank))
	}
	return w
}

func memories(rank int) (m [2][]byte) {
	rng := rand.New(rand.NewPCG(7, uint64(rank)))
	for i := range m {
		m[i] = make([]byte, typedRoom)
		for j := range m[i] {
			m[i][j] = byte(rng.Uint32())
		}
	}
	return m
}

func (w *trade) after(t require.TestingT, me int) []byte {
	memory := bytes.Clone(w.before[me][1])
	put := func(to lot, b []byte) { require.NoError(t, to.kind.Unpack(memory, to.at, b, to.count)) }
	// block i from a rank; in place it lies in the receive memory
	given := func(rank, i int, inPlace bool) []byte {
		if inPlace {
			return w.recv[rank].blockOr(i, w.recvs, w.recvPlaces, rank).bytes(t, w.before[rank][1])
		}
		return w.send[rank].blockOr(i, w.sends, w.sendPlaces, rank).bytes(t, w.before[rank][0])
	}
	mine := func(i int) lot { return w.recv[me].blockOr(i, w.recvs, w.recvPlaces, me) }
	switch w.what {
	case "bcast":
		if me != w.root {
			put(mine(0), w.recv[w.root].bytes(t, w.before[w.root][1]))
		}
	case "scatter", "scatterv":
		if me != w.root || !w.inPlace {
			to := w.recv[me]
			put(to, given(w.root, me, false))
		}
	case "gather", "gatherv", "allgather", "allgatherv":
		if me == w.root || w.what == "allgather" || w.what == "allgatherv" {
			for i := range w.size {
				place := w.inPlace && (i == w.root || w.what == "allgather" || w.what == "allgatherv")
				if place {
					put(mine(i), given(i, i, true))
				} else {
					put(mine(i), w.send[i].bytes(t, w.before[i][0]))
				}
			}
		}
	case "alltoall", "alltoallv", "alltoallw":
		for i := range w.size {
			put(mine(i), given(i, me, w.inPlace))
		}
	case "reduce":
		if me == w.root {
			put(mine(0), w.sum(t))
		}
	}
	return memory
}

func (w *trade) sum(t require.TestingT) []byte {
	total := make([]byte, int(w.send[0].kind.Size())*w.send[0].count)
	for rank := range w.size {
		b := w.send[rank].bytes(t, w.before[rank][0])
		if rank == w.root && w.inPlace {
			b = w.recv[rank].bytes(t, w.before[rank][1])
		}
		for i := 0; i < len(b); i += 4 {
			binary.LittleEndian.PutUint32(total[i:], binary.LittleEndian.Uint32(total[i:])+binary.LittleEndian.Uint32(b[i:]))
		}
	}
	return total
}

// blockOr returns block i of a call with counts and places, or of equal blocks.
func (p *lot) blockOr(i int, counts, places [][]int, rank int) lot {
	if counts == nil || counts[rank] == nil {
		return p.block(i)
	}
	_, extent := p.kind.Extent()
	return lot{p.at + places[rank][i]*int(extent), counts[rank][i], p.kind}
}

func (w *trade) do(r *mpi.Rank, send, recv runtime.View) error {
	c := r.World()
	me := c.Rank()
	of := func(v runtime.View, p lot) mpi.Data {
		return mpi.Data{Memory: v, At: p.at, Count: p.count, Type: p.kind}
	}
	from, to := of(send, w.send[me]), of(recv, w.recv[me])
	everywhere := w.what != "scatter" && w.what != "gather" && w.what != "reduce" && w.what != "scatterv" && w.what != "gatherv"
	if w.inPlace && (everywhere || me == w.root) {
		if w.what == "scatter" || w.what == "scatterv" {
			to = mpi.Data{}
		} else {
			from = mpi.Data{}
		}
	}
	o := w.operation(me, from, to, send, recv)
	if !w.starts {
		return c.Do(o)
	}
	q, err := c.Start(o)
	if err != nil {
		return err
	}
	_, err = r.Wait(q)
	return err
}

func (w *trade) operation(me int, from, to mpi.Data, send, recv runtime.View) mpi.Operation {
	switch w.what {
	case "bcast":
		return mpi.Bcast{Data: to, Root: w.root}
	case "scatter":
		return mpi.Scatter{Send: from, Recv: to, Root: w.root}
	case "gather":
		return mpi.Gather{Send: from, Recv: to, Root: w.root}
	case "allgather":
		return mpi.Allgather{Send: from, Recv: to}
	case "alltoall":
		return mpi.Alltoall{Send: from, Recv: to}
	case "reduce":
		return mpi.Reduce{Send: from, Recv: to, Op: mpi.Sum, Root: w.root}
	case "scatterv":
		return mpi.Scatterv{Send: from, Counts: w.sends[me], Places: w.sendPlaces[me], Recv: to, Root: w.root}
	case "gatherv":
		return mpi.Gatherv{Send: from, Recv: to, Counts: w.recvs[me], Places: w.recvPlaces[me], Root: w.root}
	case "allgatherv":
		return mpi.Allgatherv{Send: from, Recv: to, Counts: w.recvs[me], Places: w.recvPlaces[me]}
	case "alltoallv":
		return mpi.Alltoallv{Send: from, Counts: w.sends[me], Places: w.sendPlaces[me], Recv: to, RecvCounts: w.recvs[me], RecvPlaces: w.recvPlaces[me]}
	}
	out, in := w.lists(me, send, recv)
	return mpi.Alltoallw{Send: out, Recv: in}
}

func (w *trade) lists(me int, send, recv runtime.View) (out, in []mpi.Data) {
	for i := range w.size {
		a, b := w.send[me].blockOr(i, w.sends, w.sendPlaces, me), w.recv[me].blockOr(i, w.recvs, w.recvPlaces, me)
		out = append(out, mpi.Data{Memory: send, At: a.at, Count: a.count, Type: a.kind})
		in = append(in, mpi.Data{Memory: recv, At: b.at, Count: b.count, Type: b.kind})
	}
	if w.inPlace {
		out = nil
	}
	return out, in
}

// drawVarious draws a call whose blocks differ: they have one type, any order
// in memory, and some are empty.
func drawVarious(rt *rapid.T, size int) *trade {
	w := &trade{what: rapid.SampledFrom([]string{"scatterv", "gatherv", "allgatherv", "alltoallv", "alltoallw"}).Draw(rt, "call"), size: size}
	w.root, w.inPlace, w.starts = rapid.IntRange(0, size-1).Draw(rt, "root"), rapid.Bool().Draw(rt, "in place"), rapid.Bool().Draw(rt, "starts")
	base := drawBase(rt, 6*size)
	if rapid.IntRange(0, 3).Draw(rt, "plain") == 0 {
		base = datatype.Int32
	}
	matrix := make([][]int, size) // elements from, to
	for i := range matrix {
		matrix[i] = rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 3, 5}), size, size).Draw(rt, "numbers")
	}
	pairs := w.inPlace && (w.what == "alltoallv" || w.what == "alltoallw")
	w.sends, w.sendPlaces, w.recvs, w.recvPlaces = make([][]int, size), make([][]int, size), make([][]int, size), make([][]int, size)
	for me := range size {
		w.send, w.recv = append(w.send, lot{kind: base}), append(w.recv, lot{kind: base})
		out, in := make([]int, size), make([]int, size)
		for i := range size {
			if pairs { // equal numbers in both directions
				matrix[max(me, i)][min(me, i)] = matrix[min(me, i)][max(me, i)]
			}
			out[i], in[i] = matrix[me][i], matrix[i][me]
		}
		switch w.what {
		case "scatterv":
			w.recv[me].count, in = matrix[w.root][me], nil
			if me != w.root {
				out = nil
			}
		case "gatherv":
			for i := range in {
				in[i] = matrix[i][w.root]
			}
			if w.send[me].count, out = matrix[me][w.root], nil; me != w.root {
				in = nil
			}
		case "allgatherv":
			for i := range in {
				in[i] = matrix[i][0]
			}
			w.send[me].count, out = matrix[me][0], nil
		}
		w.sends[me], w.sendPlaces[me] = out, placesOf(rt, out)
		w.recvs[me], w.recvPlaces[me] = in, placesOf(rt, in)
		low, _ := typetest.Reach(base, 6*size)
		w.send[me].at, w.recv[me].at = int(-low)+3, int(-low)+5
		w.before = append(w.before, memories(me))
	}
	return w
}

// placesOf puts blocks behind each other in any order.
func placesOf(rt *rapid.T, counts []int) []int {
	if counts == nil {
		return nil
	}
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	places, at := make([]int, len(counts)), 0
	for _, i := range rapid.Permutation(order).Draw(rt, "order") {
		places[i] = at
		at += counts[i]
	}
	return places
}

// Random collective operations with random types, different ones for each rank
// and side, on every transport, and in trees of NICs. Every byte of every rank's memory, gaps
// included, is the result of a program without messages: with any number of
// ranks, in place and not, with a request and without.
func TestTypedCollectives(t *testing.T) {
	inTrees := carried{"trees", func(t require.TestingT, cleanup func(func()), ranks int, cfg runtime.Config, overrides ...string) *mpi.World {
		o := options(mpi.Offload)
		o.Allreduce, o.Rooted = mpi.ModeTree, true
		return makeWorld(t, cleanup, ranks, o, cfg, overrides...)
	}}
	for _, over := range append(carriers(), inTrees) {
		t.Run(over.name, func(t *testing.T) {
			random := rapid.Custom(func(rt *rapid.T) bool {
				runTrades(t, rt, over)
				return true
			})
			for seed := range *typedCollectives {
				random.Example(seed)
			}
		})
	}
}

func runTrades(t require.TestingT, rt *rapid.T, over carried) {
	size := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 7}).Draw(rt, "ranks")
	trades := []*trade{drawAlike(rt, size), drawVarious(rt, size)}
	var ends []func()
	w := over.world(t, func(f func()) { ends = append(ends, f) }, size, runtime.Config{Pages: drawPaging(rt)})
	for me := range size {
		require.NoError(t, w.Spawn(me, func(r *mpi.Rank) error {
			for _, x := range trades {
				if err := x.run(t, r); err != nil {
					return fmt.Errorf("%s of %d ranks, root %d, in place %v: %w", x.what, x.size, x.root, x.inPlace, err)
				}
			}
			return nil
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	for _, f := range ends {
		f()
	}
}

func (w *trade) run(t require.TestingT, r *mpi.Rank) error {
	var views [2]runtime.View
	for i := range views {
		v, err := r.Alloc(typedRoom)
		if err != nil {
			return err
		}
		v.CopyFrom(w.before[r.Rank()][i])
		views[i] = v
	}
	if err := w.do(r, views[0], views[1]); err != nil {
		return err
	}
	if got, want := views[1].Read(), w.after(t, r.Rank()); !bytes.Equal(got, want) {
		for i := range got {
			if got[i] != want[i] {
				return fmt.Errorf("rank %d: byte %d is %#02x, expected %#02x", r.Rank(), i, got[i], want[i])
			}
		}
	}
	if !bytes.Equal(views[0].Read(), w.before[r.Rank()][0]) {
		return fmt.Errorf("rank %d: what is sent has changed", r.Rank())
	}
	return nil
}
