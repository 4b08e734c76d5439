package fabric

import (
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// part is the switches and ports of a network in one domain of the run: see
// sim.Engine.Split. It is the actor of its switches.
type part struct {
	*network
	eng    *sim.Engine
	queues []queue // of lanes on which packets have waited; the first is unused
}

// divide gives every switch a domain, and every node the domain of its home.
// Neighbouring nodes stay together. A switch without nodes comes to the domain
// of most of its neighbours, or to the smaller one if these are about equal.
// Links between domains set how far one domain may be ahead of another. Where
// such a link takes no time, the network stays whole.
func (n *network) divide() {
	n.parts = make([]part, n.eng.Domains())
	for d := range n.parts {
		n.parts[d] = part{n, n.eng.Domain(d), make([]queue, 1)}
	}
	switches, links := n.topo.Size()
	n.domains = make([]uint8, switches)
	if len(n.parts) == 1 {
		return
	}
	n.place(links)
	for i := range links {
		if l := n.topo.Link(i); l.To != nowhere && !l.Node && n.domains[l.From] != n.domains[l.To] {
			if w := &n.wirings[n.kinds[i]]; w.hop <= 0 || (n.bounded || n.pauses != nil) && w.wire <= 0 {
				clear(n.domains)
				return
			}
		}
	}
	for i := range links {
		l := n.topo.Link(i)
		if l.To == nowhere || l.Node || n.domains[l.From] == n.domains[l.To] {
			continue
		}
		from, to, w := n.engineOf(l.From), n.engineOf(l.To), &n.wirings[n.kinds[i]]
		n.links[i].to |= abroadBit
		from.Reach(to, w.hop)
		if n.bounded || n.pauses != nil { // credits and pauses come back
			to.Reach(from, w.wire)
		}
	}
}

const unplaced = 255

// place chooses the domains of switches.
func (n *network) place(links int) {
	for s := range n.domains {
		n.domains[s] = unplaced
	}
	size := make([]int, len(n.parts))
	for node := range n.ports {
		if d := &n.domains[n.topo.Home(node)]; *d == unplaced {
			*d = uint8(node * len(n.parts) / len(n.ports))
			size[*d]++
		}
	}
	beside := make([][]int32, len(n.domains))
	for i := range links {
		if l := n.topo.Link(i); l.To != nowhere && !l.Node {
			beside[l.From], beside[l.To] = append(beside[l.From], int32(l.To)), append(beside[l.To], int32(l.From))
		}
	}
	count := make([]int, len(n.parts))
	for more := true; more; {
		more = false
		for s, d := range n.domains {
			if d != unplaced {
				continue
			}
			clear(count)
			for _, other := range beside[s] {
				if n.domains[other] != unplaced {
					count[n.domains[other]]++
				}
			}
			most := slices.Max(count)
			if most == 0 {
				continue
			}
			best := -1
			for d, k := range count {
				if 4*k >= 3*most && (best < 0 || size[d] < size[best]) {
					best = d
				}
			}
			n.domains[s] = uint8(best)
			size[best]++
			more = true
		}
	}
	for s, d := range n.domains {
		if d == unplaced { // no way leads there
			n.domains[s] = 0
		}
	}
}

func (n *network) engineOf(s int) *sim.Engine { return n.parts[n.domains[s]].eng }

// EngineOf returns the engine of a node's domain. Without domains, or in a
// fabric of another package, it is eng.
func EngineOf(f Fabric, node int, eng *sim.Engine) *sim.Engine {
	if n := networkOf(f); n != nil {
		return n.engineOf(n.topo.Home(node))
	}
	return eng
}

// MostDomains returns into how many domains a network of spec can be divided at
// most: the number of switches that have nodes.
func (s *Spec) MostDomains(nodes int) int {
	topo, err := s.checked(nodes)
	if err != nil {
		return 1 // New says why
	}
	homes := map[int]bool{}
	for i := range nodes {
		homes[topo.Home(i)] = true
	}
	return min(len(homes), unplaced)
}
