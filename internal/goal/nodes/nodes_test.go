package nodes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

func config(tb testing.TB, m mpi.Matching) nodes.Config {
	p, err := profile.Load("spin-int")
	require.NoError(tb, err)
	return nodes.Config{Config: runtime.Config{Profile: p}, MPI: mpi.DefaultOptions(m)}
}

func BenchmarkHalo(b *testing.B) {
	s, err := goal.Generate("halo3d", goal.GenParams{Ranks: 64, Size: 1024, Iterations: 3473, CalcNS: 1000})
	require.NoError(b, err)
	cfg := config(b, mpi.Offload)
	messages := int64(0)
	for b.Loop() {
		r, err := nodes.Run(context.Background(), s, cfg)
		require.NoError(b, err)
		messages += r.Messages.Received
	}
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
}

func read(t *testing.T, text string) *goal.Schedule {
	s, err := goal.ReadText(strings.NewReader(text), goal.ReadOptions{})
	require.NoError(t, err)
	return s
}

// Every pattern runs to its end in both forms, small and large, with all bytes right.
func TestPatterns(t *testing.T) {
	for _, p := range goal.Patterns() {
		for _, size := range []uint64{0, 300, 40000} {
			s, err := goal.Generate(p.Name, goal.GenParams{Ranks: 6, Size: size, Iterations: 2, CalcNS: 700, Ways: 2, Segment: 17000, Seed: 1})
			require.NoError(t, err)
			for _, m := range mpi.Forms() {
				r, err := nodes.Run(context.Background(), s, config(t, m))
				require.NoError(t, err, "%s, %d B, %s", p.Name, size, m)
				require.EqualValues(t, goal.Stat(s).Sends, r.Messages.Received)
				require.EqualValues(t, goal.Stat(s).Bytes, r.Messages.SentBytes)

				// on several cores everything is the same; three switches have two nodes each
				cfg := config(t, m)
				cfg.Profile, err = profile.Load("spin-int", "fabric.radix=4")
				require.NoError(t, err)
				r, err = nodes.Run(context.Background(), s, cfg)
				require.NoError(t, err)
				for _, cfg.Cores = range []int{2, 3} {
					divided, err := nodes.Run(context.Background(), s, cfg)
					require.NoError(t, err)
					require.Equal(t, r, divided, "%s, %d B, %s, %d cores", p.Name, size, m, cfg.Cores)
				}
			}
		}
	}
}
