package fabric

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

func (t *tree) Latency(src, dst int, bytes int32) sim.Time {
	total := int64(bytes) + int64(t.spec.Header)
	near, far := t.spec.bits(t.spec.Rate, total), t.spec.bits(t.switchRate, total)
	turn := t.turn(uint32(src), uint32(dst))
	hops := sim.Time(2*turn + 1)
	latency := hops*t.spec.Switch + (hops+1)*t.spec.Wire + t.behind + t.padding(total)
	switch {
	case t.spec.StoreAndForward:
		return latency + 2*near + (hops-1)*far
	case turn == 0:
		return latency + near
	default:
		// Whichever of two links in a row is faster waits for the other.
		return latency + near + max(near-far, far-near)
	}
}

func (t *tree) Path(src, dst int) []Hop {
	turn := t.turn(uint32(src), uint32(dst))
	path := []Hop{{nodeLink(src), 0, t.spec.Wire, t.spec.Rate}}
	for hop := 0; hop <= 2*turn; hop++ {
		level, out, up := t.route(turn, hop, uint32(dst))
		from, rate := dst, t.switchRate
		if up {
			from = src
		}
		if hop == 2*turn {
			rate = t.spec.Rate
		}
		id := t.at(level, uint32(from), uint32(dst))
		path = append(path, Hop{t.portName(level, int(id-t.levels[level].first), int(out)), t.spec.Switch, t.spec.Wire, rate})
	}
	path[len(path)-1].Wait += t.behind
	return path
}

func (t *tree) Links() []LinkStats {
	var all []LinkStats
	add := func(p *port, rate sim.Rate, name func() string) {
		if p.packets > 0 {
			all = append(all, LinkStats{name(), p.packets, p.bytes, rate.Time(p.bytes), p.maxWait, rate.Bytes(p.maxWait)})
		}
	}
	for i := range t.nodes {
		add(&t.nodes[i].tx, t.spec.Rate, func() string { return nodeLink(i) })
	}
	for level := range t.levels {
		l := &t.levels[level]
		for i := range l.count * l.width {
			rate := t.switchRate
			if level == 0 && !t.isUp(level, i%l.width) {
				rate = t.spec.Rate
			}
			add(&t.ports[l.firstPort+i], rate, func() string { return t.portName(level, i/l.width, i%l.width) })
		}
	}
	return all
}

func (t *tree) isUp(level, port int) bool { return level < len(t.levels)-1 && port >= int(t.half) }

func nodeLink(n int) string { return fmt.Sprintf("Node[%d].Tx", n) }

// switchName names the s-th switch, counted through all levels from 0.
func (t *tree) switchName(s int) string {
	l := 0
	for s >= t.levels[l].count {
		s -= t.levels[l].count
		l++
	}
	return fmt.Sprintf("Switch[%d][%d]", l, s)
}

// portName names a port of the s-th switch of a level.
func (t *tree) portName(level, s, port int) string {
	if t.isUp(level, port) {
		return fmt.Sprintf("Switch[%d][%d].Up[%d]", level, s, port-int(t.half))
	}
	return fmt.Sprintf("Switch[%d][%d].Down[%d]", level, s, port)
}
