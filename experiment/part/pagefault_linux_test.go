//go:build !invariants && !race

package part

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/internal/memory/memorytest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// The tag invariants overwrites allocated memory, so all of it would be
// touched.

// A node with an operating system, an SMMU, PART, its driver and a process that
// owns a gigabyte takes less than 1 MiB of the simulator's memory, besides the
// pages that the process has touched.
func TestNodesTakeLittleMemory(t *testing.T) {
	prof, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	const nodes, touched = 16, 256 << 10
	var begun int64
	// once before, for one-time costs: the code of modules
	for _, measured := range []bool{false, true} {
		func() {
			c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: nodes})
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			parts, err := part.Load(c, part.Options{Policy: part.PIA})
			require.NoError(t, err)
			var targets, flags [nodes]runtime.View
			for rank := range nodes {
				require.NoError(t, c.Spawn(rank, "process", func(p *runtime.Proc) error {
					source := p.Alloc(1 << 30)
					targets[rank], flags[rank] = p.Alloc(touched/2), p.Alloc(8)
					page, err := parts.Open(p, rdma.Options{PDID: 1})
					if err != nil {
						return err
					}
					source.Slice(0, touched/2).Write()
					p.Sleep(prof.OS.CollapseDelay) // all have begun
					peer := (rank + 1) % nodes
					w, err := page.Write(rdma.Transfer{
						NID: uint32(peer), Source: source.Addr(), Destination: targets[peer].Addr(), Length: touched / 2, Notify: flags[peer].Addr(), Value: 1,
					})
					if err != nil {
						return err
					}
					if err := w.Wait(); err != nil {
						return err
					}
					return page.AwaitNotification(flags[rank], 1)
				}))
			}
			require.NoError(t, c.Run(context.Background()))
			require.NotZero(t, parts.Driver(3).Stats().Pages)
			if measured {
				each := (memorytest.Resident(t) - begun) / nodes
				t.Logf("%d KiB a node, %d of which were touched", each>>10, touched>>10)
				require.Less(t, each, int64(1<<20+touched))
			}
		}()
		begun = memorytest.Resident(t)
	}
}
