package fabric

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Values of UnitSpec.At.
const (
	UnitsAtLeaves = "leaves" // switches that have nodes
	UnitsAtAll    = "all"
)

// UnitSpec gives switches compute units. A unit is a node with a link of its own
// to its switch: it has a NIC with handlers, and packets that are for it come and
// go like others. Units follow the other nodes, in the order of their switches.
// What a unit sends to several nodes passes its link once for each of them.
type UnitSpec struct {
	// At is which switches have a unit: leaves, those that have nodes, or all.
	// Absent: none.
	At string `yaml:"at,omitempty"`
	// Rate is the rate of a unit's link, in each direction. A byte takes at most
	// 1 ms. Units have no gap. Required with At.
	Rate sim.Rate `yaml:"rate,omitempty"`
	// Wire is the propagation time between a unit and its switch, 1 ps to 1 s. A
	// packet to a unit crosses the switch (Spec.Switch), and so does one from it.
	// Required with At.
	Wire sim.Time `yaml:"wire,omitempty"`
}

// checkUnits reports everything wrong with the units.
func (s *Spec) checkUnits() (errs []error) {
	u := &s.Units
	if u.At == "" {
		const alone = "given, but no switch has a unit: want units.at, too"
		if !u.Rate.IsZero() {
			errs = append(errs, fmt.Errorf("units.rate: %s", alone))
		}
		if u.Wire != 0 {
			errs = append(errs, fmt.Errorf("units.wire: %s", alone))
		}
		return errs
	}
	if u.At != UnitsAtLeaves && u.At != UnitsAtAll {
		errs = append(errs, fmt.Errorf("units.at: want %s or %s, got %q", UnitsAtLeaves, UnitsAtAll, u.At))
	}
	if u.Rate.IsZero() {
		errs = append(errs, errors.New("units.rate: want a rate such as 3200Gb/s"))
	} else if err := u.Rate.Check(); err != nil {
		errs = append(errs, fmt.Errorf("units.rate: %w", err))
	}
	if u.Wire < 1 || u.Wire > MaxTime {
		errs = append(errs, fmt.Errorf("units.wire: want 1 ps to %v, got %v: nodes may not meet without delay", MaxTime, u.Wire))
	}
	if s.SwitchPerLink || s.WholePackets || s.AddGap || s.NoContention {
		errs = append(errs, errors.New("units: switch_per_link, whole_packets, add_gap and no_contention are simplifications of networks whose switches only forward: want either them or units"))
	}
	return errs
}

// united is a topology with units. The links from switches to units follow the
// links of the topology.
type united struct {
	Topology
	spec  UnitSpec
	paths pathed  // Topology, if packets of a pair take different ways
	nodes int     // without units
	links int     // of Topology
	at    []int32 // switches of the units
	unit  []int32 // of each switch, -1: none
	host  []int32 // a node of each switch, -1: none
	// next[to*switches+at] is the link from a switch towards another. nil: every
	// unit's switch has nodes, so the ways of Topology lead there
	next []int32
}

// withUnits returns the topology with the units of s, if it has any.
func (s *Spec) withUnits(topo Topology, nodes int) (Topology, error) {
	if s.Units.At == "" {
		return topo, nil
	}
	switches, links := topo.Size()
	t := &united{Topology: topo, spec: s.Units, nodes: nodes, links: links, unit: filled(switches), host: filled(switches)}
	for n := nodes - 1; n >= 0; n-- {
		t.host[topo.Home(n)] = int32(n)
	}
	if s.spread() {
		t.paths, _ = topo.(pathed)
	}
	bare := false
	for i, host := range t.host {
		if host < 0 && s.Units.At == UnitsAtLeaves {
			continue
		}
		bare = bare || host < 0
		t.unit[i] = int32(len(t.at))
		t.at = append(t.at, int32(i))
	}
	if n, l := nodesOf(t, nodes), links+len(t.at); n > MaxNodes || l > maxLinks {
		return nil, fmt.Errorf("units: %d nodes and %d links with them, want at most %d and %d", n, l, MaxNodes, maxLinks)
	}
	if bare && t.paths != nil && len(s.Buffer) > 0 {
		return nil, fmt.Errorf("units.at: %s: with buffer and paths: %s ways to switches without nodes have no virtual channel of their own; want %s, or other paths", UnitsAtAll, s.Paths, UnitsAtLeaves)
	}
	if bare {
		if err := t.wayfind(switches); err != nil {
			return nil, err
		}
	}
	if len(s.Buffer) == 0 {
		return t, nil
	}
	if err := CheckRoutes(t, nodesOf(t, nodes), true); err != nil {
		return nil, fmt.Errorf("units.at: %s: %w", s.Units.At, err)
	}
	return t, nil
}

// nodesOf returns the number of nodes of a topology, units included.
func nodesOf(topo Topology, nodes int) int {
	if t, is := topo.(*united); is {
		return nodes + len(t.at)
	}
	return nodes
}

func filled(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = -1
	}
	return list
}

// wayfind makes the table of shortest ways. Of two it takes the one over the
// switch with the higher number, which in a tree leads up. Ways of the table
// have a virtual channel of their own, because they may lead up after down.
func (t *united) wayfind(switches int) error {
	if switches > maxSwitches {
		return fmt.Errorf("units.at: %s: %d switches, want at most %d where switches without nodes have units; %s has no such bound",
			UnitsAtAll, switches, maxSwitches, UnitsAtLeaves)
	}
	if t.Topology.Channels() == MaxChannels {
		return fmt.Errorf("units.at: %s: no virtual channel is left of %d", UnitsAtAll, MaxChannels)
	}
	in := make([][]int32, switches)
	for i := range t.links {
		if l := t.Topology.Link(i); l.To != nowhere && !l.Node {
			in[l.To] = append(in[l.To], int32(i))
		}
	}
	t.next = filled(switches * switches)
	far := make([]int, switches)
	for to := range switches {
		clear(far)
		next := t.next[to*switches : (to+1)*switches]
		via := filled(switches)
		for queue := []int{to}; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			for _, i := range in[at] {
				from := t.Topology.Link(int(i)).From
				switch {
				case from == to:
				case next[from] < 0:
					far[from] = far[at] + 1
					next[from], via[from] = i, int32(at)
					queue = append(queue, from)
				case far[from] == far[at]+1 && int32(at) > via[from]:
					next[from], via[from] = i, int32(at)
				}
			}
		}
		for from, i := range next {
			if i < 0 && from != to && t.unit[from] >= 0 {
				return fmt.Errorf("units.at: %s: no path leads from %s to %s", UnitsAtAll, t.SwitchName(from), t.SwitchName(to))
			}
		}
	}
	return nil
}

func (t *united) Size() (switches, links int) { return len(t.unit), t.links + len(t.at) }

func (t *united) Home(node int) int {
	if node >= t.nodes {
		return int(t.at[node-t.nodes])
	}
	return t.Topology.Home(node)
}

func (t *united) Channels() int {
	if t.next != nil {
		return t.Topology.Channels() + 1
	}
	return t.Topology.Channels()
}

func (t *united) Link(link int) Link {
	if k := link - t.links; k >= 0 {
		return Link{From: int(t.at[k]), To: t.nodes + k, Node: true, Rate: t.spec.Rate, Wire: t.spec.Wire}
	}
	return t.Topology.Link(link)
}

// Route takes the ways of the first node of a unit's switch. Where the switch
// has none, the table has the way.
func (t *united) Route(at, src, dst int) (link, channel int) { return t.way(at, src, dst, 0) }

// routeBy is for kinds with ByPacket. Packets that follow the table do so on
// channel 0 there; withUnits refuses it where that matters.
func (t *united) routeBy(at, src, dst int, path uint32) int {
	link, _ := t.way(at, src, dst, path)
	return link
}

func (t *united) way(at, src, dst int, path uint32) (link, channel int) {
	if src >= t.nodes {
		src = int(t.host[t.at[src-t.nodes]])
	}
	to := dst
	if dst >= t.nodes {
		home := int(t.at[dst-t.nodes])
		if at == home {
			return t.links + dst - t.nodes, 0
		}
		to = int(t.host[home])
	}
	if src >= 0 && to >= 0 {
		if t.paths != nil {
			return t.paths.routeBy(at, src, to, path), 0
		}
		return t.Topology.Route(at, src, to)
	}
	home := t.Home(dst)
	if at == home {
		return t.Topology.Route(at, dst, dst)
	}
	return int(t.next[home*len(t.unit)+at]), t.Topology.Channels()
}

func (t *united) LinkName(link int) string {
	if k := link - t.links; k >= 0 {
		return t.SwitchName(int(t.at[k])) + ".Unit"
	}
	return t.Topology.LinkName(link)
}

// ownLink describes a node's own link.
func ownLink(topo Topology, node int) Link {
	if t, is := topo.(*united); is && node >= t.nodes {
		return Link{Node: true, Rate: t.spec.Rate, Wire: t.spec.Wire}
	}
	return Link{Node: true}
}

// ownLinks sets the wirings of the nodes' own links: 0, but for units.
func (n *network) ownLinks() (err error) {
	if t, is := n.topo.(*united); is {
		for i := t.nodes; i < len(n.ports) && err == nil; i++ {
			n.ports[i].unit = true
			n.ports[i].kind, err = n.wiringOf(ownLink(t, i))
		}
	}
	return err
}

// Units are the compute units of a network.
type Units struct{ t *united }

// UnitsOf returns the units of a network, nil if it has none or is of another
// package.
func UnitsOf(f Fabric) *Units {
	if n := networkOf(f); n != nil {
		if t, is := n.topo.(*united); is {
			return &Units{t}
		}
	}
	return nil
}

// Nodes returns the first unit and the node behind the last one.
func (u *Units) Nodes() (first, behind int) { return u.t.nodes, u.t.nodes + len(u.t.at) }

// Of returns the unit of the switch that a node is at, false if it has none.
func (u *Units) Of(node int) (unit int, ok bool) {
	k := u.t.unit[u.t.Home(node)]
	return u.t.nodes + int(k), k >= 0
}

// Toward returns the next unit on the way of packets from a unit to another.
func (u *Units) Toward(unit, to int) int {
	t := u.t
	for at := t.Home(unit); ; {
		link, _ := t.Route(at, unit, to)
		l := t.Link(link)
		if l.Node {
			return to
		}
		if at = l.To; t.unit[at] >= 0 {
			return t.nodes + int(t.unit[at])
		}
	}
}

// Switch returns the name of a unit's switch.
func (u *Units) Switch(unit int) string { return u.t.SwitchName(u.t.Home(unit)) }
