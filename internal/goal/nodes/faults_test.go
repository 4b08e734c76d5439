package nodes_test

import (
	"context"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/sim"
)

var seeds = flag.Uint64("faults.seeds", 1, "seeds of TestPatternsOnFaultyMemory")

// Every pattern runs in both forms while memory is absent or late: all bytes
// are right and all operations done.
func TestPatternsOnFaultyMemory(t *testing.T) {
	faults := 0
	for _, p := range goal.Patterns() {
		for _, size := range []uint64{0, 300, 40000} {
			for seed := range *seeds {
				s, err := goal.Generate(p.Name, goal.GenParams{Ranks: 6, Size: size, Iterations: 2, CalcNS: 700, Ways: 2, Segment: 17000, Seed: seed + 1})
				require.NoError(t, err)
				for _, m := range mpi.Forms() {
					cfg := config(t, m)
					cfg.Seed = seed + 1
					f := hosttest.Nodes{Chances: hosttest.Chances{Fault: 0.2, Most: 5, Late: 0.2, Delay: 3 * sim.Microsecond}}
					cfg.Translator = f.Make
					r, err := nodes.Run(context.Background(), s, cfg)
					require.NoError(t, err, "%s, %d B, %s, seed %d", p.Name, size, m, seed+1)
					require.EqualValues(t, goal.Stat(s).Sends, r.Messages.Received)
					faults += f.Faults
				}
			}
		}
	}
	require.Greater(t, faults, 1000)
}
