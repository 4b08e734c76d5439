package spin17

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/profile"
)

func measureGraph(t *testing.T, e *experiment.Experiment, device string, v experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := e.At(p, v)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), at)
	require.NoError(t, err)
	return r
}

// sPIN'17: updates are processed at once. This saves the memory bandwidth for a
// host's stores and loads of messages. The host posts a put at the root and
// looks at one counter on each node. Handlers send the end around.
func TestGraphSavesMemory(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		for _, kernel := range []string{kernelBFS, kernelSSSP} {
			v := experiment.Values{"scale": 9, "ranks": 8, "kernel": kernel}
			of := func(mode string) *experiment.Result {
				v["mode"] = mode
				return measureGraph(t, graphs, device, v)
			}
			host, spin, uncached := of(experiment.ModeHost), of(experiment.ModeSpin), of(modeSpinUncached)
			require.Greater(t, host.Values["host_memory"].(int64), 3*uncached.Values["host_memory"].(int64), "%s %s", device, kernel)
			require.Greater(t, uncached.Values["host_memory"].(int64), spin.Values["host_memory"].(int64))
			p := spin.Point.Profile
			require.Equal(t, p.NIC.Overhead+8*p.Host.Poll, spin.Time("host_cpu"), "a put, and a look at the end on each node")
			require.Equal(t, spin.Values["edges"], host.Values["edges"])
			require.Greater(t, uncached.Values["swaps"].(int), 2*spin.Values["swaps"].(int))
		}
	}
}

// Little's law: with as many HPUs as it requires, at a slow clock, updates take
// at most the predicted share of the line. It is a bound.
func TestGraphAndLittlesLaw(t *testing.T) {
	r := measureGraph(t, graphs, "spin-int", experiment.Values{"scale": 10, "ranks": 4, "mode": experiment.ModeSpin, "kernel": kernelBFS})
	needed, share := r.Float("hpus_needed"), r.Float("line_share")
	require.Greater(t, needed*share, 4*r.Float("hpus_busy"), "time of handlers x rate of arrivals, at the node that needs the most")
	require.InEpsilon(t, 4/needed, r.Float("littles_law_share"), 1e-12)
	require.Greater(t, needed, 4.0, "they do not keep up with the line")
	require.Less(t, share, 4/needed)
}

// One node sends nothing, and a root without edges finds nothing. Both end.
func TestGraphsThatAreSmall(t *testing.T) {
	for _, mode := range graphs.Axis("mode").Of {
		r := measureGraph(t, graphs, "spin-int", experiment.Values{"scale": 6, "ranks": 1, "mode": mode, "kernel": kernelBFS})
		require.Zero(t, r.Values["updates"])
		require.Nil(t, r.Values["hpus_needed"])
		e := GraphOf("g", graph.New(3, []graph.Edge{{From: 0, To: 0, Weight: 1}, {From: 1, To: 2, Weight: 1}}))
		r = measureGraph(t, e, "spin-int", experiment.Values{"root": 0, "ranks": 5, "mode": mode, "kernel": kernelSSSP})
		require.Equal(t, 1, r.Values["edges"], "the one that leads to itself")
		require.Nil(t, r.Values[workedEdgesColumn])
	}
}

// The seed determines the graph. Another root is another search.
func TestGraphOfSeed(t *testing.T) {
	v := experiment.Values{"scale": 6, "ranks": 2, "mode": experiment.ModeSpin, "kernel": kernelBFS}
	first := measureGraph(t, graphs, "spin-int", v)
	require.Equal(t, first.Values, measureGraph(t, graphs, "spin-int", v).Values)
	v["search"] = 5
	require.NotEqual(t, first.Values["time"], measureGraph(t, graphs, "spin-int", v).Values["time"])
}

// A given graph is searched from the first vertex with an edge to another one,
// since many lists begin at 1. For a root without edges the answer gives no
// speed, but says that there was nothing to search.
func TestGraphBeginsWhereEdgesAre(t *testing.T) {
	list := []graph.Edge{{From: 0, To: 0, Weight: 1}, {From: 2, To: 3, Weight: 1}, {From: 3, To: 4, Weight: 1}}
	e := GraphOf("g", graph.New(5, list))
	require.NoError(t, e.Check())
	v := experiment.Values{"ranks": 2, "mode": experiment.ModeSpin, "kernel": kernelBFS}
	spin := measureGraph(t, e, "spin-int", v)
	require.Equal(t, 2, spin.Point.Int("root"))
	require.Equal(t, 2, spin.Values["edges"])
	v["mode"] = experiment.ModeHost
	require.Len(t, e.View.Answer([]*experiment.Result{spin, measureGraph(t, e, "spin-int", v)}), 2)
	v["root"] = 1
	alone := measureGraph(t, e, "spin-int", v)
	v["mode"] = experiment.ModeSpin
	require.Equal(t, []string{"Vertex 1 has no edge to another one: a search from it (--root) finds nothing, and its times say nothing of handlers. The first that has one is 2."},
		e.View.Answer([]*experiment.Result{alone, measureGraph(t, e, "spin-int", v)}))

	e = GraphOf("g", graph.New(1, list[:1]))
	none := measureGraph(t, e, "spin-int", experiment.Values{"ranks": 1, "mode": experiment.ModeSpin, "kernel": kernelBFS})
	require.Equal(t, 0, none.Point.Int("root"))
	require.Equal(t, []string{"Vertex 0 has no edge to another one: a search from it (--root) finds nothing, and its times say nothing of handlers."}, e.View.Answer([]*experiment.Result{none}))
}

// If a core is faster, the answer says so, and not how many times slower the
// handlers are.
func TestGraphAnswersWhoIsFaster(t *testing.T) {
	e := GraphOf("g", graph.New(2, []graph.Edge{{From: 0, To: 1, Weight: 1}}))
	v := experiment.Values{"ranks": 1, "mode": experiment.ModeSpin, "kernel": kernelBFS}
	spin := measureGraph(t, e, "spin-dis", v)
	v["mode"] = experiment.ModeHost
	host := measureGraph(t, e, "spin-dis", v)
	require.Less(t, host.Time("time"), spin.Time("time"))
	require.Contains(t, e.View.Answer([]*experiment.Result{spin, host})[0], fmt.Sprintf("a core of each node is %.2f times as fast as handlers", float64(spin.Time("time"))/float64(host.Time("time"))))
}

// A graph with distances that are too large for a label is refused before
// anything runs, for the kernel that needs them.
func TestGraphTooFar(t *testing.T) {
	var list []graph.Edge
	for v := range uint32(4097) {
		list = append(list, graph.Edge{From: v, To: v + 1, Weight: graph.MaxWeight})
	}
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	e := GraphOf("g", graph.New(4098, list))
	_, err = e.At(p, experiment.Values{"kernel": kernelSSSP, "mode": experiment.ModeHost})
	require.EqualError(t, err, "g: --kernel sssp: vertex 4096 is 4294967296 from vertex 0, expected less than 4294967295")
	_, err = e.At(p, experiment.Values{"kernel": kernelSSSP, "mode": experiment.ModeHost, "root": 2048})
	require.NoError(t, err)
	_, err = e.At(p, experiment.Values{"kernel": kernelBFS, "mode": experiment.ModeHost})
	require.NoError(t, err)
}
