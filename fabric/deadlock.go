package fabric

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// deadlocks names the circles of paused links (PFC deadlocks) of a network: each
// waits for the next, and none can ever send again.
type deadlocks struct{ *network }

// Waiting reports each circle.
func (n deadlocks) Waiting(report func(sim.Waiting)) {
	next := n.deadlocked()
	seen := make([]int, len(next)) // the walk that came by
	for first := range next {
		link := first
		for ; next[link] >= 0 && seen[link] == 0; link = next[link] {
			seen[link] = first + 1
		}
		if next[link] >= 0 && seen[link] == first+1 {
			report(n.circle(next, link))
		}
	}
}

// circle describes the circle of paused links with link first.
func (n deadlocks) circle(next []int, first int) sim.Waiting {
	name := func(link int) string {
		return fmt.Sprintf("%s (%d B at its end)", n.topo.LinkName(link), n.pauses.in[link].bytes)
	}
	since, ways := n.pauses.out[first].since, []string{name(next[first])}
	for link := next[first]; link != first; link = next[link] {
		since = max(since, n.pauses.out[link].since)
		ways = append(ways, name(next[link]))
	}
	return sim.Waiting{
		Who: "link " + ways[len(ways)-1], Since: since, Cause: true,
		What: strings.Join(ways, ", which waits for ") + ": PFC deadlock, a circle of paused links",
	}
}

// deadlocked returns, for each paused link that can never send again, one of the
// paused links for which the packets wait that have come by it; for others -1.
// Such a link stays paused because more than PauseUntil bytes that came by it
// wait for links of the same set.
func (n deadlocks) deadlocked() []int {
	p := n.pauses
	next, behind := make([]int, len(p.in)), make([]int64, len(p.in))
	for i := range next {
		next[i] = -1
		if p.in[i].paused && p.out[i].paused {
			next[i] = 0
		}
	}
	for fewer := true; fewer; {
		fewer = false
		clear(behind)
		for link := len(n.outboxes) - 1; link >= 0; link-- {
			if next[link] < 0 {
				continue
			}
			q := &n.outboxes[link].queues[Requests]
			for k := range n.outboxes[link].counts[Requests] {
				w := &q.ring[(q.head+k)&(len(q.ring)-1)]
				if behind[w.from] += n.bytesOf(w.b); next[w.from] >= 0 {
					next[w.from] = link
				}
			}
		}
		for i := range next {
			if next[i] >= 0 && behind[i] <= n.spec.PauseUntil {
				next[i], fewer = -1, true
			}
		}
	}
	return next
}
