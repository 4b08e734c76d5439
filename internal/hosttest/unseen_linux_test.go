package hosttest_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/guard"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/internal/poison"
)

// The simulator gives pages to a process without reading their bytes. Reading
// would cause a page fault of the real computer for each simulated page. After
// pages were given back the simulator reads once, and their content is gone.
// The tests of package host cannot see it, because they guard all memory.
func TestPagesComeUnseen(t *testing.T) {
	if poison.On || guard.New() != nil {
		t.Skip("every byte is written, or watched") //lint:skip with the tag invariants
	}
	const pages, page = 16 << 10, host.PageBytes
	spec, err := hosttest.Spec("memory=256MiB")
	require.NoError(t, err)
	w := hosttest.NewNode(spec)
	p := w.Kernel.NewProcess("program")
	w.Go(0, "program", func(th *host.Thread) error {
		a, err := p.Map(th, pages*page)
		require.NoError(t, err)
		faults := func() int64 {
			var before, after syscall.Rusage
			require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &before))
			require.NoError(t, p.Space().Fault(th, host.Pages{First: a, Count: pages}, true))
			require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
			return after.Minflt - before.Minflt
		}
		require.Less(t, faults(), int64(pages/4), "those of the tables")
		b, ok := p.Space().Bytes(a, pages*page)
		require.True(t, ok)
		b[5*page+7] = 1
		require.NoError(t, p.Discard(th, a, pages*page))
		require.Greater(t, faults(), int64(pages/2))
		require.Zero(t, b[5*page+7])
		return nil
	})
	require.NoError(t, w.Engine.Run())
	w.Engine.Close()
	p.Space().Release()
}
