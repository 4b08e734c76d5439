package networks

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/inswitch"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/collective"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

func worked(t *testing.T, device string, values experiment.Values, set ...string) (*experiment.Result, error) {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := collectives.At(p, values)
	if err != nil {
		return nil, err
	}
	return collectives.Measure(t.Context(), at)
}

// saved writes a schedule of one collective into a file.
func saved(t *testing.T, what string, ranks int, size uint64) string {
	s, err := collective.Generate(what, goal.GenParams{Ranks: ranks, Size: size})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, goal.WriteText(&text, s))
	name := filepath.Join(t.TempDir(), "one.goal")
	require.NoError(t, os.WriteFile(name, text.Bytes(), 0o600))
	return name
}

// A workload that is one allreduce takes what compare inswitch measures of it, but
// for the library's call, in the run as well as alone.
func TestOneCollective(t *testing.T) {
	of := inswitch.Publication.Experiments[0]
	p, err := profile.Load("inc")
	require.NoError(t, err)
	for _, ranks := range []int{3, 8} {
		const size = 100_000
		name := saved(t, "allreduce=ring", ranks, size)
		for _, on := range []string{byHost, byNIC, byNICTree, bySwitch} {
			at, err := of.At(p, experiment.Values{"mode": on, "ranks": ranks, "size": size})
			require.NoError(t, err)
			there, err := of.Measure(t.Context(), at)
			require.NoError(t, err)
			here, err := worked(t, "inc", experiment.Values{"workload": name, "on": on})
			require.NoError(t, err)
			near := 0.01
			if on == byNIC {
				near = 0.3 // HPUs add int32 here and float32 there
			}
			require.InEpsilon(t, float64(there.Time(experiment.LatencyColumn)), float64(here.Time("time")), near, on)
			row := here.Values[perCollective].(experiment.Rows)[0]
			require.Equal(t, []any{"allreduce", "allreduce", int64(size), ranks, 1}, row[:5])
			require.Equal(t, []any{here.Time("time"), here.Time("time"), here.Values["link_bytes"]}, row[5:8], on)
			require.InDelta(t, 1, here.Float("in_allreduce"), 1e-6)
		}
	}
}

// direct is when the last rank has done one call of the library, which begins at all
// of them at the same time.
func direct(t *testing.T, mode mpi.Mode, ranks int, begin func(c *mpi.Comm, v, result runtime.View) error) (last sim.Time) {
	p, err := profile.Load("inc")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: ranks})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	o := mpi.DefaultOptions(mpi.Host)
	o.Allreduce, o.Rooted = mode, mode.Rooted()
	w, err := mpi.New(c, o)
	require.NoError(t, err)
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			v, err := r.Alloc(3 * oneSize)
			if err != nil {
				return err
			}
			v.Present()
			err = begin(r.World(), v.Slice(0, oneSize), v.Slice(oneSize, 3*oneSize))
			last = max(last, r.Now())
			return err
		}))
	}
	require.NoError(t, w.Run(t.Context()))
	return last
}

// oneSize is the bytes of one collective.
const oneSize = 96_000

// A workload that is one collective of another kind takes what a program's call
// does, in the run as well as alone; in rows of modes with allreduces alone it
// takes what it does by hosts, and the answer says so.
func TestOneOfEachKind(t *testing.T) {
	const root = 2
	calls := map[goal.CollectiveKind]func(c *mpi.Comm, v, result runtime.View) error{
		goal.Broadcast: func(c *mpi.Comm, v, _ runtime.View) error { return c.Bcast(v, root) },
		goal.Reduce: func(c *mpi.Comm, v, result runtime.View) error {
			return c.Reduce(v, result.Slice(0, oneSize), mpi.Int32, mpi.Sum, root)
		},
		goal.AllGather: func(c *mpi.Comm, v, result runtime.View) error {
			return c.Allgather(v.Slice(0, oneSize/4), result.Slice(0, oneSize/4*c.Size()))
		},
		goal.ReduceScatter: func(c *mpi.Comm, v, result runtime.View) error {
			q, err := c.Start(mpi.ReduceScatter{Send: v, Recv: result.Slice(0, oneSize/c.Size()), Type: mpi.Int32, Op: mpi.Sum})
			if err == nil {
				_, err = c.Owner().Wait(q)
			}
			return err
		},
		goal.Barrier: func(c *mpi.Comm, _, _ runtime.View) error { return c.Barrier() },
	}
	for _, kind := range nodes.CallKinds()[1:] {
		for _, ranks := range []int{3, 8} {
			p := goal.GenParams{Ranks: ranks, Size: oneSize}
			if kind == goal.AllGather {
				p.Size = oneSize / 4 // of all 8: two times
			}
			if kind.Rooted() {
				p.Root = root
			}
			s, err := collective.Generate(string(kind)+"="+collective.For(kind)[0], p)
			require.NoError(t, err)
			var text bytes.Buffer
			require.NoError(t, goal.WriteText(&text, s))
			name := written(t, text.String())
			byHosts := direct(t, mpi.ModeHost, ranks, calls[kind])
			for on, mode := range modes {
				want := direct(t, mode, ranks, calls[kind])
				here, err := worked(t, "inc", experiment.Values{"workload": name, "on": on})
				require.NoError(t, err)
				require.InEpsilon(t, float64(want), float64(here.Time("time")), 0.01, "%s of %d ranks by %s", kind, ranks, on)
				if row := here.Values[perCollective].(experiment.Rows)[0]; mode.Rooted() {
					require.Equal(t, []any{string(kind), string(kind), int64(p.Size), ranks, 1}, row[:5])
					require.Equal(t, []any{here.Time("time"), here.Time("time")}, row[5:7], on)
				} else {
					require.Equal(t, want, byHosts)
					require.Contains(t, strings.Join(left([]*experiment.Result{here}), "\n"), "of kind "+string(kind)+": by processes in rows of "+on+", whose handlers have allreduces alone; "+checked[kind])
				}
				if on == bySwitch {
					require.Less(t, want, byHosts, "%s of %d ranks", kind, ranks)
				}
			}
		}
	}
}

// The training step is at least as long as its computing, allreduces of groups are
// apart, and what is alone is not slower than beside others (5%: there members begin
// as they come).
func TestTrainingStep(t *testing.T) {
	computing := sim.Time(layers*(forwardNS+backwardNS)) * sim.Nanosecond
	for on := range modes {
		r, err := worked(t, "inc", experiment.Values{"on": on})
		require.NoError(t, err)
		require.Greater(t, r.Time("time"), computing)
		rows := r.Values[perCollective].(experiment.Rows)
		require.Len(t, rows, 2)
		for i, want := range [][]any{{"forward0_0", "allreduce", int64(activations), gridColumns, 2 * layers * gridRows}, {"gradients3_0", "allreduce", int64(gradients), gridRows, layers * gridColumns}} {
			require.Equal(t, want, rows[i][:5])
			require.LessOrEqual(t, rows[i][6].(sim.Time), rows[i][5].(sim.Time)*21/20, "%s: %v", on, rows[i])
		}
	}
}

// What is no workload is an error before anything runs, and so is what nobody can do.
func TestWorkloads(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.goal")
	plain := filepath.Join(t.TempDir(), "plain.goal")
	require.NoError(t, os.WriteFile(plain, []byte("num_ranks 1\nrank 0 {\na: calc 5\n}\n"), 0o600))
	for want, c := range map[string]struct {
		workload, on string
		device       string
		set          []string
	}{
		"missing.goal: no such file or directory: expected step":                                              {missing, bySwitch, "inc", nil},
		"names no collectives: lines with //coll do":                                                          {plain, bySwitch, "inc", nil},
		"has none of [allreduce allgather reducescatter broadcast reduce barrier]: expected --on as-recorded": {saved(t, "alltoall=pairwise", 4, 64), bySwitch, "inc", nil},
		"allreduce by host: 6 bytes, expected whole int32":                                                    {saved(t, "allreduce=ring", 2, 6), byHost, "inc", nil},
		"expected the file of NPU 0 of a Chakra trace":                                                        {"trace.3.et", byHost, "inc", nil},
		"no switch of the network has a unit: expected fabric.units":                                          {step, bySwitch, "spin-dis", nil},
		"fabric.mtu: 4092, expected a multiple of 8 for allreduce by":                                         {step, byNICTree, "inc", []string{"fabric.mtu=4092"}},
	} {
		_, err := worked(t, c.device, experiment.Values{"workload": c.workload, "on": c.on}, c.set...)
		require.ErrorContains(t, err, want)
	}
	r, err := worked(t, "inc", experiment.Values{"workload": saved(t, "alltoall=pairwise", 4, 64), "on": asRecorded})
	require.NoError(t, err)
	require.Zero(t, r.Float("in_allreduce"))
	require.Contains(t, left([]*experiment.Result{r})[0], "of kind alltoall: messages of hosts in all rows, since no")
	r, err = worked(t, "inc", experiment.Values{"workload": saved(t, "reducescatter=ring", 3, 64), "on": asRecorded})
	require.NoError(t, err)
	require.Contains(t, left([]*experiment.Result{r})[0], "of kind reducescatter: messages of hosts in all rows, since one has 64 bytes, expected whole int32 for each of 3 members.")
}

// written writes the text of a schedule into a file.
func written(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "written.goal")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// A rank that computes on two cores does not make one of them twice as busy.
func TestBusiestCore(t *testing.T) {
	name := written(t, "num_ranks 1\nrank 0 {\n//coll a allreduce 8b\nx: calc 1000 cpu 0\ny: calc 1000 cpu 1\n//coll end\n}\n")
	r, err := worked(t, "inc", experiment.Values{"workload": name, "on": asRecorded})
	require.NoError(t, err)
	require.Equal(t, 2*r.Time("time"), r.Time("host_cpu"))
	require.InDelta(t, 1, r.Values[perCollective].(experiment.Rows)[0][9], 1e-6)
}

// What takes no time is not so many times as fast.
func TestNoTime(t *testing.T) {
	name := written(t, "num_ranks 2\nrank 0 {\n//coll a allreduce 8b\nx: calc 0\n//coll end\n}\nrank 1 {\n//coll a allreduce 8b\nx: calc 0\n//coll end\n}\n")
	s, err := experiment.New(collectives)
	require.NoError(t, err)
	require.NoError(t, s.Choose("workload", name))
	require.NoError(t, s.Choose("on", byHost+","+asRecorded))
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(t.Context(), points, nil)
	require.NoError(t, err)
	require.Contains(t, s.Answer(results)[0], "as-recorded takes no time, host ")
}

// Calls that wait for lost packets are named, and no number of what does not wait is.
func TestLostCall(t *testing.T) {
	name := saved(t, "allreduce=ring", 2, 64)
	for _, on := range []string{byHost, byNIC, byNICTree, bySwitch} {
		_, err := worked(t, "inc", experiment.Values{"workload": name, "on": on}, "fabric.faults.loss=1")
		require.ErrorContains(t, err, "waits in Allreduce of 64 B", on)
		require.NotContains(t, err.Error(), "never started", on)
	}
}

// A result is made again of the recorded workload, whatever is in its file now.
func TestRecordedWorkload(t *testing.T) {
	name := saved(t, "allreduce=ring", 2, 64)
	s, err := experiment.New(collectives)
	require.NoError(t, err)
	require.NoError(t, s.Choose("workload", name))
	require.NoError(t, s.Choose("on", byHost))
	times := func(s *experiment.Sweep) sim.Time {
		points, err := s.Points()
		require.NoError(t, err)
		results, err := s.Run(t.Context(), points, nil)
		require.NoError(t, err)
		return results[0].Time("time")
	}
	first := times(s)
	require.NoError(t, os.Rename(saved(t, "allreduce=ring", 4, 4096), name))
	again, _, err := experiment.RerunSweep(s.Record(), collectives, nil)
	require.NoError(t, err)
	require.Equal(t, first, times(again))
	s.Record().Inputs[0].Text += " "
	again, _, err = experiment.RerunSweep(s.Record(), collectives, nil)
	if err == nil {
		_, err = again.Points()
	}
	require.ErrorContains(t, err, "provenance.inputs: "+name+" is another file than the recorded one")
}
