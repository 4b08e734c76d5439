package goal

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A path has no gaps but latencies, and its parts add up to the finishing time.
func TestCriticalPathAddsUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := randomSchedule(t, rng, true)
		if s.MaxCPU() > 0 {
			continue // if one processor lags behind another, causes are not in order of time
		}
		p := randomParams(rng)
		m := NewSimulator(s)
		plain, err := m.Run(p)
		if err != nil {
			continue
		}
		finish := slices.Clone(plain.FinishNS)
		path, res, err := m.CriticalPath(p)
		require.NoError(t, err)
		require.Equal(t, finish, res.FinishNS, "looking must not change the result")
		require.Equal(t, res.MaxNS, path.CalcNS+path.SendNS+path.RecvNS+path.LatencyNS, "seed %d", seed)
		at := int64(0)
		for i, step := range path.Steps {
			gap := step.Start - at
			if i == 0 {
				require.Zero(t, step.Start, "seed %d", seed)
			} else {
				require.Contains(t, []int64{0, p.L}, gap, "seed %d step %d", seed, i)
			}
			at = step.End
		}
		if len(path.Steps) == 0 {
			continue
		}
		require.Equal(t, res.MaxNS, at)
		if last := path.Steps[len(path.Steps)-1]; last.End > last.Start { // else a rendezvous elsewhere
			require.Equal(t, res.MaxRank, last.Rank)
		}
	}
}

// Spans of one unit never overlap, each flow has two ends, and no span of a
// rank's processors ends after its finishing time.
func TestTraceSpans(t *testing.T) {
	t.Parallel()
	type unit struct {
		rank  int
		unit  Unit
		index uint8
	}
	spans := 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		s := randomSchedule(t, rng, true)
		p := randomParams(rng)
		free := map[unit]int64{}
		flows := map[uint64]int{}
		m := NewSimulator(s)
		res, err := m.Run(p, WithTrace(func(sp Span) {
			u := unit{sp.Rank, sp.Unit, sp.Index}
			require.GreaterOrEqual(t, sp.Start, free[u], "seed %d: %+v", seed, sp)
			require.GreaterOrEqual(t, sp.End, sp.Start)
			free[u] = sp.End
			op := s.Rank(sp.OpRank).Op(sp.Op)
			if sp.Kind == Calc {
				require.Zero(t, sp.Flow)
				require.Equal(t, Calc, op.Kind)
			} else {
				flows[sp.Flow]++
				require.Equal(t, Send, op.Kind)
			}
			spans++
		}))
		if err != nil {
			continue
		}
		require.Len(t, flows, int(res.Messages))
		for _, n := range flows {
			require.Equal(t, 4, n, "processor and interface at both ends")
		}
		for r, want := range res.FinishNS {
			last := int64(0)
			for c := range 3 {
				last = max(last, free[unit{r, Processor, uint8(c)}])
			}
			require.LessOrEqual(t, last, want)
		}
	}
	require.Greater(t, spans, 10000)
}

func TestResultForms(t *testing.T) {
	t.Parallel()
	m := NewSimulator(generate(t, "reduce-binomial", GenParams{Ranks: 8, Size: 1024}))
	res, err := m.Run(DefaultParams())
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, res.WriteJSON(&out))
	require.Equal(t, `{"ranks":8,"events":21,"messages":7,"mismatched":0,"max_ns":34914,"max_rank":0,`+
		`"finish_ns":[34914,24776,13138,13138,1500,1500,1500,1500]}`+"\n", out.String())
	out.Reset()
	require.NoError(t, res.WriteTable(&out))
	require.Contains(t, out.String(), "34914")
	require.Equal(t, Distribution{Min: 1500, P25: 1500, P50: 1500, P75: 13138, P99: 34914, Max: 34914, Mean: 11495.75},
		res.Distribution())
}

// After a first run, nothing is allocated, for any size.
func TestRunAllocatesNothing(t *testing.T) {
	for _, pattern := range []string{"dissemination", "gather", "alltoall-linear", "halo3d"} {
		m := NewSimulator(generate(t, pattern, GenParams{Ranks: 300, Size: 70000, CalcNS: 10}))
		run := func() {
			if _, err := m.Run(DefaultParams()); err != nil {
				t.Fatal(err)
			}
		}
		run()
		require.Zero(t, testing.AllocsPerRun(3, run), pattern)
	}
}

// A deadlock of many operations is explained in about the time of a run, even
// if every receive could take any message.
func TestLargeDeadlock(t *testing.T) {
	t.Parallel()
	const ranks = 400
	for _, wild := range []bool{false, true} {
		b := NewBuilder()
		for r := range ranks {
			b.Rank(r)
			last := -1
			for d := 1; d < ranks; d++ {
				from := (r + d) % ranks
				if wild {
					from = -1
				}
				last = b.Recv(8, from, 0)
			}
			for d := 1; d < ranks; d++ {
				b.Requires(b.Send(8, (r+d)%ranks, 0), last)
			}
		}
		s, err := b.Schedule()
		require.NoError(t, err)
		_, err = NewSimulator(s).Run(DefaultParams())
		var e *UnfinishedError
		require.ErrorAs(t, err, &e)
		require.Equal(t, ranks*(ranks-1), e.NumReceives)
		require.Equal(t, ranks*(ranks-1), e.Blocked)
		require.Len(t, e.Receives, maxListed)
		require.NotEmpty(t, e.Cycle)
		require.ErrorContains(t, err, "and 159580 more")
	}
}
