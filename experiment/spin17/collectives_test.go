package spin17

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// twoCollectives are an allreduce and a broadcast of two ranks, one after the
// other.
const twoCollectives = `num_ranks 2
rank 0 {
  //coll sum allreduce 8b
  a: send 8b to 1
  b: recv 8b from 1
  //coll all broadcast 64KiBb root 0
  c: send 65536b to 1 tag 1
  c requires b
}
rank 1 {
  //coll sum allreduce 8b
  a: send 8b to 0
  b: recv 8b from 0
  //coll all broadcast 64KiBb root 0
  c: recv 65536b from 0 tag 1
  c requires b
}
`

func readGOAL(t *testing.T, text string) *goal.Schedule {
	s, err := goal.ReadText(strings.NewReader(strings.ReplaceAll(text, "64KiB", "65536")), goal.ReadOptions{})
	require.NoError(t, err)
	return s
}

// measured runs a point of an experiment on the profile spin-int, if it has one.
func measured(t *testing.T, e *experiment.Experiment, at experiment.Values) *experiment.Result {
	var device *profile.Profile
	if !e.Deviceless {
		var err error
		device, err = profile.Load("spin-int")
		require.NoError(t, err)
	}
	p, err := e.At(device, at)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// Windows of collectives are within the run, one behind the other, and end with
// it.
func TestCollectivesOfARun(t *testing.T) {
	s := readGOAL(t, twoCollectives)
	for _, e := range []*experiment.Experiment{Model("x", s, Noise{}), ATLAHS("x", s, Noise{}), Schedule("x", s)} {
		r := measured(t, e, nil)
		rows := r.Values[collectivesTable].(experiment.Rows)
		require.Equal(t, []any{"sum", "allreduce", int64(8), 2, int64(2), int64(16)}, rows[0][:6])
		require.Equal(t, []any{"all", "broadcast", int64(65536), 2, int64(1), int64(65536)}, rows[1][:6])
		begin, end, whole := inUnits(rows[0][6]), inUnits(rows[0][7]), inUnits(r.Values["max"])
		require.Less(t, begin, end)
		require.LessOrEqual(t, end, inUnits(rows[1][6]), e.Name)
		require.LessOrEqual(t, inUnits(rows[1][7]), whole)
		require.Greater(t, float64(inUnits(rows[1][7])), 0.9*float64(whole))
		lines := e.Caveats([]*experiment.Result{r})
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "the longest is all")
	}
	plain := measured(t, Model("x", readGOAL(t, strings.ReplaceAll(twoCollectives, "//coll", "//")), Noise{}), nil)
	require.Empty(t, plain.Values[collectivesTable])
	require.Empty(t, collectiveCaveats(collAxis)([]*experiment.Result{plain}))
}

// Runs with other algorithms are compared with the first one, and who adds is told.
func TestSwappedCollectives(t *testing.T) {
	s := readGOAL(t, twoCollectives)
	e := Schedule("x", s)
	var results []*experiment.Result
	for _, coll := range []string{asRecorded, "allreduce=halving-doubling+all=ring:slices=4", "sum=offload-doubling"} {
		r := measured(t, e, experiment.Values{collAxis: coll, "matching": "host"})
		require.Len(t, r.Values[collectivesTable], 2)
		results = append(results, r)
	}
	require.Equal(t, int64(4), results[1].Values[collectivesTable].(experiment.Rows)[1][4], "4 slices")
	lines := strings.Join(e.Caveats(results), "\n")
	require.Contains(t, lines, "allreduce=halving-doubling+all=ring:slices=4, host takes ")
	require.Contains(t, lines, "times as long as as-recorded.")
	require.Contains(t, lines, "The library adds on cores, in NICs or in switches")
	require.NotContains(t, strings.Join(e.Caveats(results[:2]), "\n"), "The library")
	broadcast := measured(t, e, experiment.Values{collAxis: "all=offload-tree", "matching": "host"})
	require.NotEqual(t, results[0].Values["max"], broadcast.Values["max"])
	require.Zero(t, broadcast.Values[collectivesTable].(experiment.Rows)[1][4], "messages")
	for _, c := range []struct {
		of   *experiment.Experiment
		coll string
		want string
	}{
		{Model("x", s, Noise{}), "sum=host", "--coll: sum by host: an algorithm of nodes"},
		{e, "sum=offload-trees", "barrier also host, offload-tree, switch"},
		{e, "all=offload-ring", "--coll: all by offload-ring: it does allreduces, not broadcast"},
		{Schedule("x", readGOAL(t, strings.Replace(twoCollectives, "all broadcast 64KiBb root 0", "all gather 64KiBb root 0", 2))), "all=host", "--coll: all by host: it does [allreduce allgather reducescatter broadcast reduce barrier], not gather"},
		{Schedule("x", readGOAL(t, strings.Replace(twoCollectives, "all broadcast 64KiBb root 0", "all allreduce 64KiBb", 2))), "sum=offload-ring+all=host", "expected one of them for all"},
	} {
		device, err := profile.Load("spin-int")
		require.NoError(t, err)
		if c.of.Deviceless {
			device = nil
		}
		_, err = c.of.At(device, experiment.Values{collAxis: c.coll})
		require.ErrorContains(t, err, c.want)
	}
}

// Time in which several are under way counts once.
func TestUnderWay(t *testing.T) {
	require.Equal(t, int64(10+5), underWay([]window{{20, 25}, {0, 6}, {2, 5}, {4, 10}}))
	require.Zero(t, underWay(nil))
	require.Equal(t, int64(7), inUnits(sim.Time(7)))
}
