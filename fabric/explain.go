package fabric

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Latency walks the path as a lone packet does.
func (n *network) Latency(src, dst int, bytes int32) sim.Time {
	total := int64(bytes) + int64(n.spec.Header)
	in := n.spec.bits(n.spec.Rate, total)
	start, end := sim.Time(0), in
	hop, wire := n.hop, n.spec.Wire
	n.walk(src, dst, func(link int) {
		w := &n.wirings[n.kinds[link]]
		length := n.spec.bits(w.rate, total)
		if n.spec.StoreAndForward {
			start = end
		}
		start += hop
		if !n.spec.StoreAndForward {
			start += max(0, in-length)
		}
		in, end, hop, wire = length, start+length, w.hop, w.wire
	})
	_, b := (&Packet{Bytes: bytes}).words()
	return end + wire + n.behind + n.padding(b)
}

// walk calls f with each switch's link of a path.
func (n *network) walk(src, dst int, f func(link int)) {
	for s := n.topo.Home(src); ; {
		i, _ := n.topo.Route(s, src, dst)
		f(i)
		if n.links[i].last() {
			return
		}
		s = n.links[i].end()
	}
}

// hops returns the number of links of a path.
func (n *network) hops(src, dst int) int {
	count := 1
	n.walk(src, dst, func(int) { count++ })
	return count
}

func (n *network) Path(src, dst int) []Hop {
	path := []Hop{{nodeLink(src), 0, n.spec.Wire, n.spec.Rate}}
	wait := n.spec.Switch
	n.walk(src, dst, func(link int) {
		w := &n.wirings[n.kinds[link]]
		path = append(path, Hop{n.topo.LinkName(link), wait, w.wire, w.rate})
		wait = w.hop - w.wire
	})
	path[len(path)-1].Wait += n.behind
	return path
}

func (n *network) Links() []LinkStats {
	var all []LinkStats
	add := func(l *link, rate sim.Rate, k int, name func() string) {
		packets := int64(n.wraps[k])<<32 + int64(l.packets)
		if packets == 0 {
			return
		}
		s := LinkStats{name(), packets, l.bytes, rate.Time(l.bytes), l.maxWait, rate.Bytes(l.maxWait), 0}
		for i := range n.perLink {
			lane := &n.lanes[k*n.perLink+i]
			s.MaxBuffer = max(s.MaxBuffer, lane.size-lane.low)
		}
		all = append(all, s)
	}
	for i := range n.ports {
		add(&n.ports[i].link, n.spec.Rate, len(n.links)+i, func() string { return nodeLink(i) })
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

// lineName names a link by number, those of switches before those of nodes.
func (n *network) lineName(i int) string {
	if i < len(n.links) {
		return n.topo.LinkName(i)
	}
	return nodeLink(i - len(n.links))
}

// lineNamed returns the number of a link, -1 if there is none of that name.
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
