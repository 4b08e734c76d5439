package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/part/driver"
	"github.com/spinsim/spinsim/handlers/rdma/channels"
	"github.com/spinsim/spinsim/runtime"
)

// A process that has opened a page forks: what it shares with its device does not become copy on write, so that its driver goes on with it. What is the
// program's own does, and is brought in as any other page.
func TestForkWithAPage(t *testing.T) {
	fork := func(p *runtime.Proc, _ uint64) error {
		_, err := p.OS().Fork(p.Thread(), "child")
		return err
	}
	for _, by := range []driver.Method{driver.GetUserPages, driver.Touch, driver.InKernel} {
		o := run{Options: driver.Options{By: by}, bytes: 1 << 16, source: true, dest: true, wreck: fork, wreckSource: fork}.do(t)
		require.NotZero(t, o.stats(1).Requests, by)
		for i := range 2 {
			require.NoError(t, o.c.Node(i).Kernel().Audit(), by)
		}
		unmapped := func(p *runtime.Proc, addr uint64) error {
			require.NoError(t, fork(p, addr))
			return p.OS().Unmap(p.Thread(), addr+4096, 4096)
		}
		run{Options: driver.Options{By: by}, bytes: 1 << 16, wreckSource: unmapped, fails: channels.ErrDenied}.do(t)
	}
}
