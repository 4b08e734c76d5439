package experiment_test

import (
	goruntime "runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/guard"
	"github.com/spinsim/spinsim/internal/guard/guardtest"
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A rank that waits for a message at its entry takes 9 KiB of Go's heap and a
// stack of 4 KiB, so a million of them fit into a workstation. If the entry has
// handlers the stack is the same, and their instance takes heap besides.
func TestWhatARankTakes(t *testing.T) {
	if poison.On { // objects are larger, and never used again
		return
	}
	guard.Enable(0)
	defer guard.Enable(guardtest.Few)
	for library, most := range map[string]uint64{"": 9 << 10, "count": 14 << 10} { //lint:maporder each by itself
		heap, stack := takenByRank(t, library)
		for range 2 { // the least: what goes on in Go counts, too
			h, s := takenByRank(t, library)
			heap, stack = min(heap, h), min(stack, s)
		}
		t.Logf("%q: %d bytes of heap and %d of stack", library, heap, stack)
		require.LessOrEqual(t, stack, uint64(4<<10+256), library) // a few for all ranks together
		require.LessOrEqual(t, heap, most, library)
	}
}

// takenByRank returns the bytes of heap and of stack of each of many ranks with
// handlers of a library.
func takenByRank(t *testing.T, library string) (heap, stack uint64) {
	const ranks = 255
	defer func(shared bool) { lazy.Shared = shared }(lazy.Shared)
	lazy.Shared = false // else their memory comes from slabs, and is not counted alone
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	before := memoryNow()
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: ranks})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	var module *handlers.Module
	if library != "" {
		module, err = handlers.Must(library).Load(c)
		require.NoError(t, err)
	}
	for rank := range ranks {
		require.NoError(t, c.Spawn(rank, "idle", func(p *runtime.Proc) (err error) {
			var in *handlers.Installed
			if module != nil {
				runtime.Deep(p, func() { in, err = module.Install(p, handlers.Options{}) })
			}
			if err != nil {
				return err
			}
			arrived, err := experiment.AppendEntry(p.NI(), 0, 0, p.Alloc(8), in)
			if err != nil {
				return err
			}
			return arrived.Wait(8)
		}))
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection makes stacks smaller
	var stuck *sim.StuckError
	require.ErrorAs(t, c.Run(t.Context()), &stuck)
	var after goruntime.MemStats
	goruntime.ReadMemStats(&after)
	return (memoryNow().HeapAlloc - before.HeapAlloc) / ranks, (after.StackInuse - before.StackInuse) / ranks
}

func memoryNow() (m goruntime.MemStats) {
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return m
}
