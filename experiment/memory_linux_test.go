package experiment

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/memory"
)

// A command ends if it takes more memory than the limit, even if its need was
// not known before. What is refused in advance never runs.
func TestMemoryLimit(t *testing.T) {
	const most = 2 << 30
	ran := 0
	growing := named("growing")
	growing.Run = func(ctx context.Context, _ *Point) (Values, error) {
		ran++
		var kept [][]byte
		for len(kept)<<20 < most && ctx.Err() == nil {
			page := make([]byte, 1<<20)
			for i := 0; i < len(page); i += 1 << 10 {
				page[i] = 1
			}
			kept = append(kept, page)
		}
		return nil, fmt.Errorf("%d MiB: %w", len(kept), context.Cause(ctx))
	}
	limit := fmt.Sprint(memory.Resident() + 200<<20)
	status, out, errs := call([]*Experiment{growing}, "--loss-rate", "0", "--memory-limit", limit)
	require.Equal(t, cli.ExitFailed, status)
	require.Empty(t, out)
	require.Regexp(t, `^growing: ended: it has taken \d+ MiB of memory, --memory-limit is \d+ MiB\n$`, errs)
	require.Equal(t, 1, ran)

	debug.FreeOSMemory() // what the first command has left would count
	growing.Memory = func(*Point) int64 { return 1 << 40 }
	status, _, errs = call([]*Experiment{growing}, "--loss-rate", "0", "--memory-limit", limit)
	require.Equal(t, cli.ExitInput, status)
	require.Regexp(t, `^growing: growing, profile spin-int, 0% loss rate, 2 ranks needs about 1 TiB of memory, --memory-limit is \d+ MiB\n$`, errs)
	require.Equal(t, 1, ran)

	available := memory.Available
	defer func() { memory.Available = available }()
	memory.Available = func() int64 { return 16 << 30 }
	status, _, errs = call([]*Experiment{growing}, "--loss-rate", "0")
	require.Equal(t, cli.ExitFailed, status, "the same is good input on a larger machine")
	require.Contains(t, errs, "needs about 1 TiB of memory, 15 GiB are available (--memory-limit 0 tries it all the same)")
	status, _, errs = call([]*Experiment{named("one")}, "--loss-rate", "0", "--memory-limit", "5MiB")
	require.Equal(t, cli.ExitInput, status)
	require.Equal(t, "one: --memory-limit: 5 MiB, expected 0 (no limit) or at least 64 MiB, about what the program takes itself\n", errs)
	status, _, errs = call([]*Experiment{named("one")}, "--loss-rate", "0", "--memory-limit", "0")
	require.Equal(t, cli.ExitOK, status, errs)
}
