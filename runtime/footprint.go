package runtime

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/profile"
)

// Bytes that simulated things take on the simulating machine, as measured with
// thousands of nodes (TestMemoryNeeded of cmd/spinsim).
const (
	nodeFootprint    = 17 << 10 // a node with a process, and perhaps handlers
	contextFootprint = 48       // a context of a handler processing unit that has not run
	placeFootprint   = 640      // of a network that is built however few nodes it has
)

// Footprint estimates the bytes that a cluster of a number of nodes takes on the
// simulating machine, to refuse a cluster that is clearly too large. Memory that
// processes allocate, and messages in flight, are not included.
func Footprint(p *profile.Profile, nodes int) int64 {
	bytes := int64(nodes) * (nodeFootprint + contextFootprint*int64(p.HPU.Cores)*int64(p.HPU.Contexts))
	if kind := p.Fabric.Kind; (kind == fabric.Torus || kind == fabric.ExaNeSt) && p.Fabric.Validate() == nil {
		bytes += placeFootprint * int64(p.Fabric.Most())
	}
	return bytes
}
