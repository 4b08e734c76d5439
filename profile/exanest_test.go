package profile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/sim"
)

// prototype returns the network of exanest with overrides, and its boards.
func prototype(t *testing.T, set ...string) (fabric.Fabric, fabric.QFDBs) {
	p, err := Load("exanest", set...)
	require.NoError(t, err)
	q, is := p.Fabric.QFDBs()
	require.True(t, is)
	f, err := fabric.New(sim.New(1), p.Fabric, q.Nodes())
	require.NoError(t, err)
	return f, q
}

// The report's check of its Table 1, for a cell without data: the path inside
// an MPSoC, 120 ns per link, 145 ns per router; its paths a to e, the longest
// one it used, (3,1,2), and some longer ones. The 32 header bytes add their
// time at the slowest rate.
func TestTheReportsCheckOfItsPaths(t *testing.T) {
	const ns = sim.Nanosecond
	f, q := prototype(t)
	require.Equal(t, fabric.QFDBs{X: 4, Y: 4, Z: 2}, q)
	inside := f.Latency(0, 0, 0) - bytesOn(f.Path(0, 0), 32)
	require.InDelta(t, 26.667, float64(inside)/float64(ns), 0.001, "a cycle from and to the interface, and two in the switch")
	for _, c := range []struct {
		path, from, to      string
		board, far, routers int // links inside and between QFDBs
	}{
		{"intra-FPGA", "M1QAF1", "M1QAF1", 0, 0, 0},
		{"a intra-QFDB-sh", "M1QAF1", "M1QAF2", 1, 0, 0},
		{"b intra-mezz-sh", "M1QAF1", "M1QBF1", 0, 1, 2},
		{"c intra-mezz-mh(2)", "M1QAF1", "M1QBF2", 1, 1, 2},
		{"d intra-mezz-mh(3)", "M1QAF2", "M1QBF3", 2, 1, 2},
		{"e inter-mezz(1,0,0)", "M1QAF1", "M2QAF1", 0, 1, 2},
		{"e inter-mezz(1,1,0)", "M1QAF1", "M2QBF1", 0, 2, 3},
		{"e inter-mezz(2,1,1)", "M1QAF1", "M3QBF4", 1, 3, 4},
		{"e inter-mezz(3,1,2), the longest used", "M1QAF2", "M7QBF3", 2, 4, 5},
		{"the longest there is", "M1QAF2", "M7QCF3", 2, 5, 6},
		{"round the rings", "M1QAF1", "M4QDF1", 0, 2, 3},
	} {
		src, err := q.Find(c.from)
		require.NoError(t, err)
		dst, err := q.Find(c.to)
		require.NoError(t, err)
		want := inside + sim.Time(c.board+c.far)*120*ns + sim.Time(c.routers)*145*ns
		require.Equal(t, want+bytesOn(f.Path(src, dst), 32), f.Latency(src, dst, 0), c.path)
		require.Equal(t, f.Latency(src, dst, 0), f.Latency(dst, src, 0), "and back: %s", c.path)
		slowest := map[bool]float64{true: 10, false: 16}[c.far > 0]
		if c.board+c.far > 0 {
			require.GreaterOrEqual(t, float64(bytesOn(f.Path(src, dst), 32)), 32*8/slowest*float64(ns), c.path)
		}
	}
}

// bytesOn returns the time that the bytes of a packet add to the time of its
// head: on the last link, and wherever a faster link waits for a slower one.
func bytesOn(path []fabric.Hop, bytes int64) (t sim.Time) {
	for i, h := range path[1:] {
		t += max(0, path[i].Rate.Time(bytes)-h.Rate.Time(bytes))
	}
	return t + path[len(path)-1].Rate.Time(bytes)
}

// No two MPSoCs of the prototype are further apart than half of each ring.
func TestTheLongestWayOfThePrototype(t *testing.T) {
	f, q := prototype(t)
	longest := 0
	for dst := range q.Nodes() {
		// without the ends, and the links into and out of the router
		longest = max(longest, len(f.Path(1, dst))-4)
	}
	require.Equal(t, 2+2+2+1, longest)
}

// Paths within a board and to the next board take equal times on exanest and
// exanest-qfdb, whose router link has the rate of the board's links. Longer
// paths on exanest-qfdb take 13.333 ns less per link: the report's check counts
// a switch that does not exist.
func TestBothProfilesOfTheBoardsAgree(t *testing.T) {
	one, err := Load("exanest-qfdb")
	require.NoError(t, err)
	other, err := fabric.New(sim.New(1), one.Fabric, 16)
	require.NoError(t, err)
	f, q := prototype(t, "fabric.dims=[4, 1, 1]")
	require.Equal(t, 16, q.Nodes())
	for src := range 16 {
		for dst := range 16 {
			far := min((dst/4-src/4+4)%4, (src/4-dst/4+4)%4)
			require.Len(t, f.Path(src, dst), len(other.Path(src, dst)))
			for _, bytes := range []int32{0, 56, 256} {
				ours := f.Latency(src, dst, bytes) - bytesOn(f.Path(src, dst), int64(bytes)+32)
				theirs := other.Latency(src, dst, bytes) - bytesOn(other.Path(src, dst), int64(bytes)+32)
				require.InDelta(t, float64(max(0, far-1)*13333), float64(ours-theirs), 5, "%s to %s", q.Name(src), q.Name(dst))
			}
		}
	}
}

// The network of exanest-qfdb is the prototype's: the time of a path without
// load follows from the numbers of TR-488 and P.
func TestExanestQFDBHasTheHopsOfTheReport(t *testing.T) {
	const ns = sim.Nanosecond
	near := func(want, got sim.Time, what string) {
		require.InDelta(t, float64(want), float64(got), float64(ns)/100, "%s: want %v, got %v", what, want, got)
	}
	network := func(set ...string) fabric.Fabric {
		p, err := Load("exanest-qfdb", set...)
		require.NoError(t, err)
		f, err := fabric.New(sim.New(1), p.Fabric, 16)
		require.NoError(t, err)
		return f
	}
	cell := func(bytes, gigabits float64) sim.Time { return sim.Time((bytes + 32) * 8 / gigabits * float64(ns)) }
	// From interface to switch and back takes a cycle each, the switch two cycles.
	inside := (2*6.667 + 13.333)
	f := network()
	for _, bytes := range []int32{0, 16, 256} {
		board := func(hop float64) sim.Time { return sim.Time((inside+hop)*float64(ns)) + cell(float64(bytes), 16) }
		near(board(120), f.Latency(0, 1, bytes), "a link in a QFDB adds 120 ns (TR-488)")
		near(board(120), f.Latency(2, 3, bytes), "all pairs have one")
		near(board(150), network("fabric.switch_wire=136.667ns").Latency(0, 1, bytes), "150 ns (P)")
		near(sim.Time((inside+120)*float64(ns))+cell(float64(bytes), 17), network("fabric.switch_rate=17Gb/s").Latency(0, 1, bytes), "17 Gb/s (P)")
		// N hops of 10 Gb/s: each adds a link, less the switch behind it, and N
		// + 1 routers of 145 ns; at the end the switch of F1.
		out := func(hops float64) sim.Time {
			return sim.Time((inside+hops*106.667+(hops+1)*145+13.333)*float64(ns)) + cell(float64(bytes), 10)
		}
		near(out(1), f.Latency(0, 4, bytes), "to the next QFDB")
		near(out(2), f.Latency(0, 8, bytes), "to the one opposite")
		near(out(1), f.Latency(0, 12, bytes), "the ring is closed")
		near(out(1)+240*ns, f.Latency(1, 6, bytes), "by the network MPSoCs")
	}
	p, err := Load("exanest-qfdb")
	require.NoError(t, err)
	_, err = fabric.New(sim.New(1), p.Fabric, 17)
	require.ErrorContains(t, err, "16")
}
