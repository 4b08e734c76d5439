package fabric

import (
	"fmt"
	"strings"
)

// Torus is a grid whose rows are rings, with a node at each point.
const Torus = "torus"

const maxDims = 8

var dimsField = &field{
	name:  "dims",
	clear: func(s *Spec) { s.Dims = nil },
	set: func(s *Spec) (set []string) {
		if len(s.Dims) > 0 {
			set = append(set, fmt.Sprintf("dims: %v", s.Dims))
		}
		return set
	},
}

var torusKind = &kind{
	name:   Torus,
	fields: []*field{dimsField},
	whole:  true,
	check: func(s *Spec) []error {
		points, legal := 1, len(s.Dims) >= 1 && len(s.Dims) <= maxDims
		for _, d := range s.Dims {
			legal = legal && d >= 1 && d <= MaxNodes
			points = min(points*max(1, min(d, MaxNodes)), MaxNodes+1)
		}
		if !legal || points > MaxNodes {
			return []error{fmt.Errorf("dims: want 1 to %d lengths of rings, each at least 1, of at most %d switches in all, got %v", maxDims, MaxNodes, s.Dims)}
		}
		return nil
	},
	most: func(s *Spec) int { return newTorus(s.Dims, 1).count },
	build: func(s *Spec, nodes int) (Topology, error) {
		t := newTorus(s.Dims, nodes)
		if nodes > t.count {
			return nil, fmt.Errorf("dims: a torus of %v has %d nodes, too few for %d", s.Dims, t.count, nodes)
		}
		return t, nil
	},
}

// torus is a grid whose rows are rings, in any number of dimensions, with a
// switch and a node at each point. Node x is at the point (x mod d[0], x/d[0]
// mod d[1], …). A packet goes along the first dimension to the coordinate of
// its destination, then along the second and so on (dimension order), each time
// the shorter way round. Halfway round, packets from even coordinates go
// towards higher ones, and packets from odd coordinates towards lower ones. A
// ring of two has one cable, whose two directions are the Plus links.
//
// Packets on one ring could wait for each other in a circle. Two virtual
// channels prevent it (Dally and Seitz, "Deadlock-free message routing in
// multiprocessor interconnection networks", 1987). A packet begins each ring on
// channel 0 and changes to channel 1 with the link between the last coordinate
// and 0. On channel 0 no packet uses that link. On channel 1 no packet passes
// it twice, as no path is longer than half the ring. Dimensions follow each
// other in one order, so there are no circles over several dimensions either.
type torus struct {
	dims   []int
	stride []int // step of the nodes' numbers, by dimension
	nodes  int
	count  int // switches
	ports  int // links of each switch: one to its node, then Plus and Minus of each dimension
}

func newTorus(dims []int, nodes int) *torus {
	t := &torus{dims: dims, nodes: nodes, count: 1, ports: 1 + 2*len(dims)}
	for _, d := range dims {
		t.stride = append(t.stride, t.count)
		t.count *= d
	}
	return t
}

func (t *torus) Size() (switches, links int) { return t.count, t.count * t.ports }

func (t *torus) Channels() int { return 2 }

func (t *torus) Home(node int) int { return node }

func (t *torus) Link(link int) Link {
	s, port := link/t.ports, link%t.ports
	if port == 0 {
		if s >= t.nodes {
			return Link{From: s, To: nowhere}
		}
		return Link{From: s, To: s, Node: true}
	}
	k, minus := (port-1)/2, port%2 == 0
	length := t.dims[k]
	if length == 1 || length == 2 && minus {
		return Link{From: s, To: nowhere}
	}
	c := s / t.stride[k] % length
	to := c + 1
	if minus {
		to = c - 1
	}
	return Link{From: s, To: s + ((to+length)%length-c)*t.stride[k]}
}

func (t *torus) Route(at, src, dst int) (link, channel int) {
	link = at * t.ports
	for k, length := range t.dims {
		c, to := at/t.stride[k]%length, dst/t.stride[k]%length
		if c == to {
			continue
		}
		from := src / t.stride[k] % length
		if t.plus(from, to, length) {
			if c+1 == length || c < from {
				channel = 1
			}
			return link + 1 + 2*k, channel
		}
		if c == 0 || c > from {
			channel = 1
		}
		return link + 2 + 2*k, channel
	}
	return link, 0
}

// plus reports whether the path from one coordinate to another leads towards
// higher ones.
func (t *torus) plus(from, to, length int) bool {
	switch up := (to - from + length) % length; {
	case 2*up != length:
		return 2*up < length
	default:
		return length == 2 || from%2 == 0
	}
}

// SwitchName names a switch by its coordinates.
func (t *torus) SwitchName(s int) string {
	var b strings.Builder
	b.WriteString("Switch")
	for k, length := range t.dims {
		fmt.Fprintf(&b, "[%d]", s/t.stride[k]%length)
	}
	return b.String()
}

func (t *torus) LinkName(link int) string {
	name, port := t.SwitchName(link/t.ports), link%t.ports
	switch {
	case port == 0:
		return name + ".Node"
	case port%2 == 1:
		return fmt.Sprintf("%s.Plus[%d]", name, port/2)
	}
	return fmt.Sprintf("%s.Minus[%d]", name, port/2-1)
}
