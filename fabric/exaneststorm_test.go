package fabric

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// pattern returns the destinations of a node's cells, one after the other.
type pattern func(rng *rand.Rand, q QFDBs) func(src int) int

// adversaries are patterns that are known to be bad for networks.
var adversaries = map[string]pattern{
	"all to one": func(_ *rand.Rand, q QFDBs) func(int) int {
		victim := q.Nodes() / 2
		return func(int) int { return victim }
	},
	"permutation": func(rng *rand.Rand, q QFDBs) func(int) int {
		to := rng.Perm(q.Nodes())
		return func(src int) int { return to[src] }
	},
	"permutations": func(rng *rand.Rand, q QFDBs) func(int) int { // another one for every cell
		return func(int) int { return rng.IntN(q.Nodes()) }
	},
	"bisection": func(_ *rand.Rand, q QFDBs) func(int) int { // half of every ring away: all ties
		return func(src int) int {
			p := q.Place(src)
			p.X, p.Y, p.Z = (p.X+q.X/2)%q.X, (p.Y+q.Y/2)%q.Y, (p.Z+q.Z/2)%q.Z
			return q.Node(p)
		}
	},
	"complement": func(_ *rand.Rand, q QFDBs) func(int) int {
		return func(src int) int { return q.Nodes() - 1 - src }
	},
	"tornado": func(_ *rand.Rand, q QFDBs) func(int) int { // all in the same direction
		return func(src int) int {
			p := q.Place(src)
			p.X, p.Y, p.Z = (p.X+(q.X-1)/2)%q.X, (p.Y+(q.Y-1)/2)%q.Y, (p.Z+(q.Z-1)/2)%q.Z
			return q.Node(p)
		}
	},
}

// storm makes every node of a system send so many cells of random lengths by a
// pattern, as fast as it can. It checks that all arrive, in order for each
// pair, that no buffer overflows, that all credits come back, and that the load
// of every link agrees with routing by hand.
func storm(t require.TestingT, spec Spec, p pattern, each int, seed uint64) {
	q := spec.qfdbs()
	rng := rand.New(rand.NewPCG(seed, 1))
	to := p(rng, q)
	s := build(t, spec, q.Nodes(), nil)
	s.held = make([][Classes][]Packet, q.Nodes())
	predicted := map[string]int64{}
	for src := range q.Nodes() {
		for i := range each {
			cell := Packet{Src: int32(src), Dst: int32(to(src)), Bytes: rng.Int32N(257), Seq: uint32(i), Class: Class(rng.IntN(Classes)), Ref: s}
			s.held[src][cell.Class] = append(s.held[src][cell.Class], cell)
			for _, link := range linksOf(&spec, src, int(cell.Dst)) {
				predicted[link]++
			}
		}
	}
	for src := range q.Nodes() {
		for c := range Class(Classes) {
			s.sendHeld(src, c)
		}
	}
	require.NoError(t, s.eng.Run())
	checkFlood(t, s, spec, q.Nodes()*each)
	carried := map[string]int64{}
	for _, l := range s.f.Links() {
		carried[l.Name] = l.Packets
	}
	require.Equal(t, predicted, carried)
}

// The prototype, and rings on which cells could wait in a circle, survive all
// patterns with buffers of one cell and of 4 KiB.
func TestStormsOnExanest(t *testing.T) {
	for name, p := range adversaries {
		for _, dims := range [][]int{{4, 4, 2}, {7, 1, 1}, {2, 5, 3}} {
			for _, buffer := range []int64{288, 4096} {
				for _, ties := range []string{tiesSource, tiesUp} {
					spec := exanestSpec(dims...)
					spec.Buffer, spec.Exanest.Ties = Buffers{buffer}, ties
					t.Run(fmt.Sprint(name, dims, buffer, ties), func(t *testing.T) { storm(t, spec, p, 12, 7) })
				}
			}
		}
	}
}

// Where one virtual channel is legal, one is enough.
func TestStormsWithOneChannel(t *testing.T) {
	for _, p := range adversaries {
		spec := exanestSpec(4, 3, 2)
		spec.Buffer, spec.Exanest.Channels = Buffers{288}, 1
		require.NoError(t, spec.Validate())
		storm(t, spec, p, 20, 3)
	}
}

// Drawn systems, orders, ties, numbers of links, buffers, times and patterns.
func TestDrawnStormsOnExanest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawExanest(t, 5)
		spec.Buffer = Buffers{rapid.Int64Range(288, 1000).Draw(t, "buffer"), 288}
		spec.StoreAndForward = rapid.Bool().Draw(t, "store and forward")
		spec.Exanest.Control = rapid.Int32Range(0, 200).Draw(t, "control")
		p := adversaries[rapid.SampledFrom([]string{"all to one", "permutation", "permutations", "bisection", "complement", "tornado"}).Draw(t, "pattern")]
		storm(t, spec, p, rapid.IntRange(1, 8).Draw(t, "cells"), rapid.Uint64().Draw(t, "seed"))
	})
}

// The storms can fail: on a ring of seven with all cells on one channel, nodes
// that send to the third board further on wait for each other.
func TestStormWithoutChannelsDeadlocks(t *testing.T) {
	spec := exanestSpec(7, 1, 1)
	spec.Buffer, spec.Exanest.Channels = Buffers{288}, 1
	require.ErrorContains(t, spec.Validate(), "could wait for each other in a circle")
	const nodes = 28
	s := buildOn(t, func(eng *sim.Engine) (Fabric, error) { return newFabric(eng, spec, nodes, newExanest(&spec, nodes)) })
	s.held = make([][Classes][]Packet, nodes)
	for i := range nodes {
		for k := range uint32(20) {
			s.held[i][Requests] = append(s.held[i][Requests], Packet{Src: int32(i), Dst: int32((i + 12) % nodes), Bytes: 256, Seq: k})
		}
		s.sendHeld(i, Requests)
	}
	require.Less(t, len(s.run(t)), nodes*20)
}
