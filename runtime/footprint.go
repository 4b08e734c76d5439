package runtime

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/profile"
)

// Memory that simulated things take on the simulating machine, in bytes. The
// numbers come from runs of thousands of nodes (TestMemoryNeeded of
// cmd/spinsim).
const (
	nodeFootprint     = 12 << 10 // node, NIC and network, without the parts that a profile multiplies
	processFootprint  = 14 << 10 // coroutine, Portals interface, one entry
	instanceFootprint = 40 << 10 // instance of a small module with its state
	coreFootprint     = 100      // core of a pool of processors
	contextFootprint  = 280      // context of such a core
	hostCoreFootprint = 64
)

// Footprint estimates the bytes that a cluster takes on the simulating machine,
// for so many nodes, processes, and handler instances. If the network is larger
// than its nodes, all of the network counts. Memory that processes allocate,
// and messages in flight, are not included.
func Footprint(p *profile.Profile, nodes, processes, instances int) int64 {
	node := int64(nodeFootprint) + int64(p.Host.Cores)*hostCoreFootprint + processorFootprint(p.HPU.Cores, p.HPU.Contexts)
	for _, pool := range p.Pools { //lint:maporder a sum
		node += processorFootprint(max(1, pool.Cores), max(pool.Contexts, pool.Depth))
	}
	return int64(nodes)*node + int64(processes)*processFootprint + int64(instances)*instanceFootprint + fabric.Idle(&p.Fabric, nodes)
}

func processorFootprint(cores, contexts int) int64 {
	return int64(cores) * (coreFootprint + int64(contexts)*contextFootprint)
}
