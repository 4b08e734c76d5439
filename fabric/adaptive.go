package fabric

import "github.com/spinsim/spinsim/sim"

// lightest draws Spec.Choices ways of a packet that is at the output ports of
// switch s, and returns the first of those with the least load. The draw depends
// on the packet and on the switch.
func (n *network) lightest(s, src, dst int, b uint64, now sim.Time) int {
	best := -1
	var least sim.Time
	for k := range n.spec.Choices {
		path := mixed(uint32(b), uint32(src), s*maxChoices+k) % Paths
		link := n.pathed.routeBy(s, src, dst, path)
		if link == best {
			continue
		}
		if load := n.load(link, now); best < 0 || load < least {
			best, least = link, load
		}
	}
	return best
}

// load is the time that passes until a link has sent all that waits for it. With
// bounded buffers, what is in the buffer at its end counts as well.
func (n *network) load(link int, now sim.Time) sim.Time {
	load := max(0, n.links[link].free-now)
	rate := n.wirings[n.kinds[link]].rate
	if n.outboxes != nil {
		q := &n.outboxes[link]
		load += rate.Time(q.bytes[Requests] + q.bytes[Answers])
	}
	if n.bounded {
		for i := range Classes * n.channels {
			l := &n.lanes[link<<n.shift+i]
			load += rate.Time(int64(l.used) + int64(l.count)*n.spec.full())
		}
	}
	return load
}
