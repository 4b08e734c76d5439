package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// NICs of a host are nodes of the network that share the cores, the cache, the
// kernel and the memory controller.
func TestNICsShareAHost(t *testing.T) {
	p, err := profile.Load("exanest", "host.cores=2", "host.cache=1MiB", "host.cache_bandwidth=0.1ns/B")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 4, NICs: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	ends := make([]sim.Time, 4)
	for node := range ends {
		require.NoError(t, c.Spawn(node, "worker", func(p *runtime.Proc) error {
			if node < 3 {
				p.Compute(sim.Microsecond)
			}
			ends[node] = p.Now()
			return nil
		}))
	}
	require.NoError(t, c.Run(context.Background()))
	require.Equal(t, []sim.Time{sim.Microsecond, 2 * sim.Microsecond, sim.Microsecond, 0}, ends)
	require.Same(t, c.Node(0).CPU(), c.Node(1).CPU())
	require.NotNil(t, c.Node(0).Kernel())
	require.Same(t, c.Node(0).Kernel(), c.Node(1).Kernel())
	require.Same(t, c.Node(0).Bus().Cache, c.Node(1).Bus().Cache)
	require.NotSame(t, c.Node(1).CPU(), c.Node(2).CPU())
	require.NotSame(t, c.Node(0).IOMMU(), c.Node(1).IOMMU())
	require.Equal(t, 3*sim.Microsecond, c.Stats().CPUBusy)

	_, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: 3, NICs: 2})
	require.EqualError(t, err, "runtime: 3 nodes, expected a multiple of 2, the NICs of a host")
	p, err = profile.Load("spin-int", "fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=2", "fabric.spines=1", "fabric.rails=3")
	require.NoError(t, err)
	_, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: 4, NICs: 2})
	require.EqualError(t, err, "profile spin-int: fabric.rails: 3, expected a multiple of 2, the NICs of a host")
}
