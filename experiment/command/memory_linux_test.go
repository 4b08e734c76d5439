package command

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/memory"
)

// What takes more memory than it may ends, also if nothing was known of it before; what was refused before has not run.
func TestMemoryLimit(t *testing.T) {
	const most = 2 << 30
	ran := 0
	growing := named("growing")
	growing.Run = func(ctx context.Context, _ *experiment.Point) (experiment.Values, error) {
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
	status, out, errs := call([]*experiment.Experiment{growing}, "--loss-rate", "0", "--memory-limit", limit)
	require.Equal(t, ExitFailed, status)
	require.Empty(t, out)
	require.Regexp(t, `^growing: ended: it has taken \d+ MiB of memory, --memory-limit is \d+ MiB\n$`, errs)
	require.Equal(t, 1, ran)

	growing.Memory = func(*experiment.Point) int64 { return 1 << 40 }
	status, _, errs = call([]*experiment.Experiment{growing}, "--loss-rate", "0", "--memory-limit", limit)
	require.Equal(t, ExitInput, status)
	require.Regexp(t, `^growing: growing, profile spin-int, 0% loss rate, 2 ranks needs about 1 TiB of memory, --memory-limit is \d+ MiB\n$`, errs)
	require.Equal(t, 1, ran)

	available := memory.Available
	defer func() { memory.Available = available }()
	memory.Available = func() int64 { return 16 << 30 }
	status, _, errs = call([]*experiment.Experiment{growing}, "--loss-rate", "0")
	require.Equal(t, ExitInput, status)
	require.Contains(t, errs, "needs about 1 TiB of memory, 15 GiB are available (--memory-limit 0 tries it all the same)")
	status, _, errs = call([]*experiment.Experiment{named("one")}, "--loss-rate", "0", "--memory-limit", "5MiB")
	require.Equal(t, ExitInput, status)
	require.Equal(t, "one: --memory-limit: 5 MiB, expected 0 (no limit) or at least 64 MiB, about what the program takes itself\n", errs)
	status, _, errs = call([]*experiment.Experiment{named("one")}, "--loss-rate", "0", "--memory-limit", "0")
	require.Equal(t, ExitOK, status, errs)
}

// A process that may reserve next to nothing says so, before Go does.
func TestCramped(t *testing.T) {
	err := cramped([]memory.Bound{{Name: "ulimit -d", Limit: 8 << 30, Taken: 1 << 20}, {Name: "ulimit -v", Limit: 5 << 28, Taken: 1 << 30}})
	require.EqualError(t, err, "ulimit -v allows 1.25 GiB, of which the program has reserved 1 GiB as it began: expected at least 1.5 GiB")
	require.NoError(t, cramped([]memory.Bound{{Name: "ulimit -v", Limit: 3 << 29, Taken: 1 << 30}}))
}
