package runtime

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/profile"
)

// What simulated things take of the memory of the machine, bytes: measured with
// runs of thousands of nodes (TestMemoryNeeded of cmd/spinsim).
const (
	nodeFootprint     = 12 << 10 // node, NIC and network, without what a profile multiplies
	processFootprint  = 14 << 10 // its coroutine, Portals interface, an entry
	instanceFootprint = 40 << 10 // an instance of a small module, its state included
	coreFootprint     = 100      // of a pool of processors
	contextFootprint  = 280      // of such a core
	hostCoreFootprint = 64
)

// Footprint estimates what a cluster takes of the memory of the machine that
// simulates it, bytes: so many nodes, processes, and instances of handlers, and
// all of a network that is larger than its nodes. What processes allocate, and
// messages that are under way, come on top of it.
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
