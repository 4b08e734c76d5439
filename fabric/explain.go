package fabric

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Way returns the links of a packet's path from one of nodes nodes to another,
// and its time when nothing is in its way. It does not build the network, so it
// also works for networks that do not fit into memory.
func Way(spec Spec, nodes, src, dst int, bytes int32) (path []Hop, latency sim.Time, err error) {
	topo, err := spec.checked(nodes)
	if err != nil {
		return nil, 0, err
	}
	if src < 0 || src >= nodes || dst < 0 || dst >= nodes || bytes < 0 || bytes > spec.MTU {
		return nil, 0, fmt.Errorf("fabric: want nodes from 0 to %d and 0 to %d bytes, got %d bytes from %d to %d", nodes-1, spec.MTU, bytes, src, dst)
	}
	return spec.path(topo, src, dst), spec.latency(topo, src, dst, bytes), nil
}

// latency walks the path like a lone packet.
func (s *Spec) latency(topo Topology, src, dst int, bytes int32) sim.Time {
	total := int64(bytes) + int64(s.Header)
	before := s.wiring(ownLink(topo, src))
	in := s.bits(before.rate, total)
	start, end := sim.Time(0), in
	along(topo, src, dst, func(link int) {
		w := s.wiring(topo.Link(link))
		length := s.bits(w.rate, total)
		if s.StoreAndForward {
			start = end
		}
		start += before.hop
		if !s.StoreAndForward {
			start += max(0, in-length)
		}
		in, end, before = length, start+length, w
	})
	return end + before.wire + s.behind() + s.padding(int64(bytes))
}

// along calls f with each switch's link of a path.
func along(topo Topology, src, dst int, f func(link int)) {
	for s := topo.Home(src); ; {
		i, _ := topo.Route(s, src, dst)
		f(i)
		l := topo.Link(i)
		if l.Node {
			return
		}
		s = l.To
	}
}

func (s *Spec) path(topo Topology, src, dst int) []Hop {
	before := s.wiring(ownLink(topo, src))
	path := []Hop{{nodeLink(src), 0, before.wire, before.rate}}
	along(topo, src, dst, func(link int) {
		w := s.wiring(topo.Link(link))
		path = append(path, Hop{topo.LinkName(link), before.hop - before.wire, w.wire, w.rate})
		before = w
	})
	path[len(path)-1].Wait += s.behind()
	return path
}

func (n *network) Latency(src, dst int, bytes int32) sim.Time {
	return n.spec.latency(n.topo, src, dst, bytes)
}

func (n *network) Path(src, dst int) []Hop { return n.spec.path(n.topo, src, dst) }

// hops returns the number of links of a packet's path. With ByLoad it is one of
// several, of the same length.
func (n *network) hops(pk *Packet) int {
	count := 1
	if n.pathed == nil {
		along(n.topo, int(pk.Src), int(pk.Dst), func(int) { count++ })
		return count
	}
	for s := n.topo.Home(int(pk.Src)); ; count++ {
		l := n.topo.Link(n.pathed.routeBy(s, int(pk.Src), int(pk.Dst), uint32(pk.Path)))
		if s = l.To; l.Node {
			return count + 1
		}
	}
}

func (n *network) Links() []LinkStats {
	var all []LinkStats
	add := func(l *link, rate sim.Rate, k int, name func() string) {
		packets := int64(n.wraps[k])<<32 + int64(l.packets)
		if packets == 0 {
			return
		}
		s := LinkStats{name(), packets, l.bytes, rate.Time(l.bytes), l.maxWait, rate.Bytes(l.maxWait), 0, 0, 0}
		if n.bounded {
			for _, lane := range n.lanes[k<<n.shift : (k+1)<<n.shift] {
				s.MaxBuffer = max(s.MaxBuffer, int64(lane.most))
			}
		}
		if p := n.pauses; p != nil {
			s.MaxBuffer, s.Pauses, s.Paused = p.in[k].most, p.out[k].count, p.out[k].length(n.eng.Now())
		}
		all = append(all, s)
	}
	for i := range n.ports {
		add(&n.ports[i].link, n.wirings[n.ports[i].kind].rate, len(n.links)+i, func() string { return nodeLink(i) })
	}
	for i := range n.links {
		l := &n.links[i]
		add(l, n.wirings[n.kinds[i]].rate, i, func() string { return n.topo.LinkName(i) })
	}
	return all
}

func (n *network) Losses() ([]Loss, int) {
	if n.damage == nil {
		return nil, 0
	}
	return n.damage.list()
}

// lineName returns the name of a link by number, links of switches before links
// of nodes.
func (n *network) lineName(i int) string {
	if i < len(n.links) {
		return n.topo.LinkName(i)
	}
	return nodeLink(i - len(n.links))
}

// lineNamed returns the number of a link, -1 if no link has that name.
func (n *network) lineNamed(name string) int {
	for i := range n.ports {
		if nodeLink(i) == name {
			return len(n.links) + i
		}
	}
	for i := range n.links {
		if n.topo.LinkName(i) == name {
			return i
		}
	}
	return -1
}

func nodeLink(n int) string { return fmt.Sprintf("Node[%d].Tx", n) }
