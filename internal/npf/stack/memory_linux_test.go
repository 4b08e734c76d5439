package stack_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/memory/memorytest"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// A program maps, writes and unmaps memory, like a stack that opens and closes.
// Afterwards that memory takes nothing from the simulating machine, for small
// and for large pieces: 100 MB of both.
func TestUnmappedTakesNoMemory(t *testing.T) {
	if poison.On {
		t.Log("with the tag invariants what is unmapped stays, overwritten")
		return
	}
	prof, err := profile.Load("eth-npf")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.Spawn(0, "program", func(p *runtime.Proc) error {
		begun := memorytest.Resident(t)
		for i := range 400 {
			n := 128 << 10
			if i%10 == 0 {
				n = 1<<20 + 300<<10 // shares the pages at its ends with others
			}
			addr, err := p.OS().Map(p.Thread(), n)
			if err != nil {
				return err
			}
			v, err := p.View(addr, n)
			if err != nil {
				return err
			}
			for at, b := 0, v.Write(); at < n; at += 1 << 10 {
				b[at] = 1
			}
			if err := p.OS().Unmap(p.Thread(), addr, uint64(n)); err != nil {
				return err
			}
		}
		require.Less(t, memorytest.Resident(t)-begun, int64(16<<20))
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
}
