package fabric

import (
	"fmt"
	"slices"
	"strings"
)

// waits is a graph of buffers: a packet in the buffer at the end of a link
// waits for room in the buffer at the end of the next.
type waits struct {
	next [][]int32
	mark []int32 // the last search that visited it
	turn int32
}

func newWaits(buffers int) *waits {
	return &waits{next: make([][]int32, buffers), mark: make([]int32, buffers)}
}

// add adds the waits along a path. It reports whether no circle has formed; if
// one has, it adds nothing.
func (w *waits) add(path []int32) bool {
	var added []int32
	for i := 0; i+1 < len(path); i++ {
		from, to := path[i], path[i+1]
		if slices.Contains(w.next[from], to) {
			continue
		}
		if w.turn++; from == to || w.leads(to, from) {
			for _, f := range added {
				w.next[f] = w.next[f][:len(w.next[f])-1]
			}
			return false
		}
		w.next[from] = append(w.next[from], to)
		added = append(added, from)
	}
	return true
}

// leads reports whether from waits for to, directly or through others.
func (w *waits) leads(from, to int32) bool {
	stack := []int32{from}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at == to {
			return true
		}
		if w.mark[at] == w.turn {
			continue
		}
		w.mark[at] = w.turn
		stack = append(stack, w.next[at]...)
	}
	return false
}

// circle returns buffers that wait for each other, nil if there are none.
func (w *waits) circle() []int32 {
	const onPath, done = 1, 2
	state := make([]uint8, len(w.next))
	type step struct {
		at   int32
		next int
	}
	for start := range w.next {
		if state[start] != 0 {
			continue
		}
		state[start] = onPath
		path := []step{{at: int32(start)}}
		for len(path) > 0 {
			top := &path[len(path)-1]
			if top.next == len(w.next[top.at]) {
				state[top.at] = done
				path = path[:len(path)-1]
				continue
			}
			to := w.next[top.at][top.next]
			top.next++
			switch state[to] {
			case onPath:
				i := slices.IndexFunc(path, func(s step) bool { return s.at == to })
				var found []int32
				for _, s := range path[i:] {
					found = append(found, s.at)
				}
				return found
			case 0:
				state[to] = onPath
				path = append(path, step{at: to})
			}
		}
	}
	return nil
}

// CheckRoutes follows the route from every node to every other and reports the
// first that does not end there. If bounded, it also looks for buffers that
// could wait for each other in a circle: a topology without one cannot
// deadlock. It takes about a second for 4,000 nodes.
func CheckRoutes(topo Topology, nodes int, bounded bool) error {
	switches, links := topo.Size()
	channels := topo.Channels()
	w := newWaits(links * channels)
	for src := range nodes {
		for dst := range nodes {
			at, before := topo.Home(src), int32(-1)
			for hop := 0; ; hop++ {
				link, channel := topo.Route(at, src, dst)
				if link < 0 || link >= links || channel < 0 || channel >= channels || topo.Link(link).From != at || hop == switches {
					return fmt.Errorf("the route from node %d to node %d leads to link %d, channel %d, of %s after %d switches: it does not arrive",
						src, dst, link, channel, topo.SwitchName(at), hop)
				}
				l := topo.Link(link)
				if l.Node {
					if l.To != dst || channel != 0 {
						return fmt.Errorf("the route from node %d to node %d ends at node %d, on channel %d", src, dst, l.To, channel)
					}
					break
				}
				k := int32(link*channels + channel)
				if before >= 0 && !slices.Contains(w.next[before], k) {
					w.next[before] = append(w.next[before], k)
				}
				at, before = l.To, k
			}
		}
	}
	if !bounded {
		return nil
	}
	circle := w.circle()
	if circle == nil {
		return nil
	}
	var names []string
	for _, k := range circle {
		names = append(names, fmt.Sprintf("%s (channel %d)", topo.LinkName(int(k)/channels), int(k)%channels))
	}
	return fmt.Errorf("buffer: packets could wait for each other in a circle: %s; want no buffer, or more virtual channels", strings.Join(names, ", "))
}
