package breakdown

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// core records work of a program on a core.
func core(r *Record, rank int, process, what string, from, to sim.Time) {
	t := Track{Group: "rank", ID: rank, Name: "CPU 0"}
	t.Kind = r.Track(&t)
	r.Span(&t, what, from, to, 0, []sim.Arg{{Key: "process", Text: process}})
}

// step makes a step of packet 0 of message 5.
func step(k sim.StepKind, rank int32, at sim.Time) *sim.Step {
	return &sim.Step{Kind: k, Rank: rank, To: at, Task: sim.Task{Flow: 5, Handler: sim.NoHandler}}
}

func segmentOf(rank int32, handler int8, from, to sim.Time, why sim.Stopped) *sim.Step {
	return &sim.Step{Kind: sim.StepSegment, Rank: rank, From: from, To: to, Why: why, Task: sim.Task{Flow: 5, Handler: handler}}
}

// A put has a payload handler that waits for an HPU, computes, waits for a DMA
// operation and computes again. Its completion handler increments a counter. A
// program waits for the counter, then looks and copies. Every part has its
// constructed length.
func TestPathOfOneMessage(t *testing.T) {
	r := NewRecord()
	core(r, 0, "source", "put", 0, 65)
	r.Step(step(sim.StepMessage, 0, 65))
	r.Step(step(sim.StepReady, 0, 165))
	r.Step(step(sim.StepArrived, 1, 400))
	r.Step(step(sim.StepFound, 1, 430))
	r.Step(segmentOf(1, payloadTask, 500, 520, sim.NotStopped))
	r.Step(segmentOf(1, payloadTask, 600, 610, sim.ForMemory))
	r.Step(segmentOf(1, completionTask, 615, 620, sim.NotStopped))
	r.Step(step(sim.StepDone, 1, 700))
	core(r, 1, "target", "poll", 700, 751)
	core(r, 1, "target", "stream", 751, 800)
	var times Times
	r.Path(&times, 1, "target", 0, 800)
	require.Equal(t, Times{Post: 65, Fetch: 100, Wire: 235, Match: 30, Wait: 70 + 5, Handler: 35, Deposit: 80, Event: 80, Look: 51, Compute: 49}, times)
	require.Equal(t, sim.Time(800), times.Sum())
	later := Times{}
	r.Path(&later, 1, "target", 410, 700) // only the time inside the interval
	require.Equal(t, Times{Match: 20, Wait: 75, Handler: 35, Deposit: 80, Event: 80}, later)
}

// A program that slept, one that waited for its core, and one without a record.
func TestPathOfPrograms(t *testing.T) {
	r := NewRecord()
	core(r, 0, "a", "compute", 10, 20)
	core(r, 0, "b", "compute", 20, 50)
	core(r, 0, "a", "poll", 50, 60)
	core(r, 0, "a", "put", 90, 100)
	var times Times
	r.Path(&times, 0, "a", 0, 100)
	require.Equal(t, Times{Post: 10, Look: 10, Compute: 40, Other: 40}, times)
	times = Times{}
	r.Path(&times, 7, "", 3, 9)
	require.Equal(t, Times{Other: 6}, times)
	r.Path(&times, 7, "", 9, 9)
	require.Equal(t, sim.Time(6), times.Sum())
}

// A record in which a message is sent by its own handler ends somewhere, too.
func TestPathInACircle(t *testing.T) {
	r := NewRecord()
	made := step(sim.StepMessage, 0, 10)
	made.Because, made.By, made.Asked = sim.OfHandler, sim.Task{Flow: 5, Handler: payloadTask}, 10
	r.Step(made)
	r.Step(step(sim.StepReady, 0, 10))
	r.Step(step(sim.StepArrived, 1, 10))
	r.Step(step(sim.StepFound, 1, 10))
	r.Step(segmentOf(1, payloadTask, 10, 10, sim.NotStopped))
	r.Step(segmentOf(1, completionTask, 10, 10, sim.NotStopped))
	r.Step(step(sim.StepDone, 1, 20))
	var times Times
	r.Path(&times, 1, "", 0, 20)
	require.Equal(t, sim.Time(20), times.Sum())
	require.Equal(t, sim.Time(10), times[Other])
}

// For any steps in any order the parts add up, also after Divide.
func TestPathOfAnything(t *testing.T) {
	rapid.Check(t, func(d *rapid.T) {
		r := NewRecord()
		at := func() sim.Time { return sim.Time(rapid.Int64Range(0, 60).Draw(d, "at")) }
		task := func() sim.Task {
			return sim.Task{Flow: rapid.Uint64Range(0, 3).Draw(d, "flow"), Packet: rapid.Int32Range(0, 2).Draw(d, "packet"), Handler: int8(rapid.IntRange(-1, 2).Draw(d, "handler"))}
		}
		for range rapid.IntRange(0, 60).Draw(d, "steps") {
			from, to := at(), at()
			if rapid.IntRange(0, 4).Draw(d, "core") == 0 {
				core(r, rapid.IntRange(0, 1).Draw(d, "rank"), rapid.SampledFrom([]string{"a", "b"}).Draw(d, "program"), "poll", min(from, to), max(from, to))
				continue
			}
			s := &sim.Step{
				Kind: sim.StepKind(rapid.IntRange(0, int(sim.StepDone)).Draw(d, "kind")), Because: sim.Because(rapid.IntRange(0, 2).Draw(d, "because")),
				Why: sim.Stopped(rapid.IntRange(0, 4).Draw(d, "why")), Sent: rapid.Bool().Draw(d, "sent"), Rank: rapid.Int32Range(0, 1).Draw(d, "node"),
				Task: task(), By: task(), Asked: at(), From: min(from, to), To: max(from, to), Bytes: 8,
			}
			r.Step(s)
		}
		from, to := at(), at()
		var times Times
		r.Path(&times, rapid.IntRange(0, 2).Draw(d, "of"), "", from, to)
		require.Equal(d, max(0, to-from), times.Sum())
		for _, p := range times {
			require.GreaterOrEqual(d, p, sim.Time(0))
		}
		n := rapid.IntRange(1, 7).Draw(d, "n")
		divided := times
		divided.Divide(n)
		require.Equal(d, times.Sum()/sim.Time(n), divided.Sum())
		u := r.Use([]int{2, 1}, []Interval{{from, to}, {0, 5}})
		for _, share := range []float64{u.Processors, u.In, u.Out, u.Egress, u.Ingress} {
			require.GreaterOrEqual(d, share, 0.0)
			require.LessOrEqual(d, share, 1.0)
		}
	})
}

// One of two HPUs computes half of the time, the other a quarter: they are busy
// for three eighths. The length of a queue counts what waits at once, not what
// passes at one moment.
func TestUse(t *testing.T) {
	r := NewRecord()
	for i, s := range [][2]sim.Time{{0, 50}, {25, 50}, {50, 50}} {
		flow := uint64(i + 1)
		r.Step(&sim.Step{Kind: sim.StepArrived, To: 0, Bytes: 100, Task: sim.Task{Flow: flow, Handler: sim.NoHandler}})
		r.Step(&sim.Step{Kind: sim.StepFound, To: 1, Task: sim.Task{Flow: flow, Handler: sim.NoHandler}})
		r.Step(&sim.Step{Kind: sim.StepSegment, Processor: int32(i % 2), From: s[0], To: s[1], Task: sim.Task{Flow: flow, Handler: payloadTask}})
	}
	r.Step(&sim.Step{Kind: sim.StepTransfer, Asked: 10, From: 20, To: 30})
	r.Step(&sim.Step{Kind: sim.StepTransfer, Asked: 10, From: 30, To: 40, Out: true})
	r.Step(&sim.Step{Kind: sim.StepTransfer, Asked: 20, From: 40, To: 50})
	u := r.Use([]int{2}, []Interval{{0, 100}})
	require.Equal(t, Use{Processors: 0.375, In: 0.2, Out: 0.1, Waiting: 2, Buffer: 200, Transfers: 2}, u)
	require.Equal(t, 0.5, r.Use([]int{2}, []Interval{{0, 25}}).Processors)
	require.Equal(t, Use{}, r.Use([]int{2}, nil))
	require.Equal(t, Use{}, r.Use([]int{2}, []Interval{{60, 100}}))
}
