package fabric

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Topology is the shape of a network as data: switches and links by number, and
// a routing function. Every node has a link into the fabric, to its Home, and
// one out of it, which is a link of its Home. [NewNetwork] gives it time.
//
// All methods are functions of their arguments alone, and Route allocates
// nothing.
type Topology interface {
	// Size returns the numbers of switches and of links that leave them.
	Size() (switches, links int)

	// Home returns the switch that a node's own link leads to.
	Home(node int) int

	// Link describes a link that leaves a switch.
	Link(link int) Link

	// Route returns the link by which a packet from node src to node dst leaves
	// switch at, and its virtual channel there, from 0. A packet that comes from
	// its source was on channel 0. Channels matter only with bounded buffers.
	Route(at, src, dst int) (link, channel int)

	// Channels returns the number of virtual channels of each link, 1 to
	// MaxChannels. Route needs this number to prevent a cycle of packets that wait
	// for room.
	Channels() int

	// SwitchName and LinkName return names for people: "Switch[1][0]",
	// "Switch[1][0].Up[3]".
	SwitchName(s int) string
	LinkName(link int) string
}

// Link is a link that leaves a switch.
type Link struct {
	From int      // switch
	To   int      // switch, or node if Node
	Node bool     // it leads to a node
	Rate sim.Rate // zero: Spec.Rate if it leads to a node, else Spec.SwitchRate
	Wire sim.Time // zero: Spec.Wire if it leads to a node, else Spec.SwitchWire

	Switch  sim.Time // traversal of the switch at its end, if it leads to one; zero: Spec.Switch
	Control int32    // bytes that follow every packet on the link and only occupy it
	// likewise for every 16 bytes of a packet and its header
	ControlWord int32
}

// nowhere is the end of an unused port of a tree that is not full.
const nowhere = -1

// MaxChannels is the largest number of virtual channels of a link.
const MaxChannels = 8

// maxLinks bounds the links of a network. The number of a link with its channel
// must fit an event.
const maxLinks = 1 << 26

// NewNetwork makes a network of a shape, with the times of spec, and registers
// its switches with eng. It ignores Kind, Radix, Dims and Topology of spec. A
// shape with a link to nowhere is an error. With bounded buffers a shape in
// which packets could wait for each other in a circle is an error too.
func NewNetwork(eng *sim.Engine, spec Spec, nodes int, topo Topology) (Fabric, error) {
	if err := errors.Join(spec.times()...); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	if err := checkTopology(topo, nodes); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	if err := CheckRoutes(topo, nodes, len(spec.Buffer) > 0); err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	topo, err := spec.withUnits(topo, nodes)
	if err != nil {
		return nil, fmt.Errorf("fabric: %w", err)
	}
	return newFabric(eng, spec, nodesOf(topo, nodes), topo)
}

// checkTopology checks every node and link separately.
func checkTopology(topo Topology, nodes int) error {
	if nodes < 1 || nodes > MaxNodes {
		return fmt.Errorf("want 1 to %d nodes, got %d", MaxNodes, nodes)
	}
	switches, links := topo.Size()
	if switches < 1 || links < 1 || links > maxLinks {
		return fmt.Errorf("want at least 1 switch and 1 to %d links, got %d and %d", maxLinks, switches, links)
	}
	if c := topo.Channels(); c < 1 || c > MaxChannels {
		return fmt.Errorf("want 1 to %d virtual channels, got %d", MaxChannels, c)
	}
	down := make([]int, nodes) // links that lead to each node
	for i := range links {
		l := topo.Link(i)
		ends := switches
		if l.Node {
			ends = nodes
		}
		if l.From < 0 || l.From >= switches || l.To < 0 || l.To >= ends {
			return fmt.Errorf("link %d leads from switch %d to number %d: there are %d switches and %d nodes", i, l.From, l.To, switches, nodes)
		}
		if l.Node {
			down[l.To]++
			if topo.Home(l.To) != l.From {
				return fmt.Errorf("link %s leads to node %d, whose home is another switch", topo.LinkName(i), l.To)
			}
		}
	}
	for n, count := range down {
		if h := topo.Home(n); h < 0 || h >= switches || count != 1 {
			return fmt.Errorf("node %d has switch %d of %d as its home, and %d links lead to it: want one", n, h, switches, count)
		}
	}
	return nil
}
