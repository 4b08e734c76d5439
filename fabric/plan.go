package fabric

import (
	"errors"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/sim"
)

// File is a network of switches and cables in Spec.Topology.
const File = "file"

var topologyField = &field{
	name:  "topology",
	clear: func(s *Spec) { s.Topology = Plan{} },
	set: func(s *Spec) (set []string) {
		if p := &s.Topology; len(p.Switches)+len(p.Nodes)+len(p.Links) > 0 {
			set = append(set, "topology:")
		}
		return set
	},
}

var fileKind = &kind{
	name:   File,
	fields: []*field{topologyField},
	check:  func(s *Spec) []error { return s.Topology.check() },
	most: func(s *Spec) (n int) {
		for i := range s.Topology.Nodes {
			n += s.Topology.Nodes[i].count()
		}
		return n
	},
	build: func(s *Spec, nodes int) (Topology, error) {
		return newPlanned(&s.Topology, nodes, len(s.Buffer) > 0)
	},
}

// Plan is a network of your own: switches, their nodes, and cables. Packets
// take shortest paths, counted in links. If several links are equally short,
// packets to one node all take the same link, and different nodes use them in
// turn.
type Plan struct {
	Switches []PlanSwitch `yaml:"switches"`
	// Nodes places the nodes: the first node is at the first switch named, and so
	// on.
	Nodes []PlanNodes `yaml:"nodes"`
	Links []PlanLink  `yaml:"links"`
}

// PlanSwitch is a switch.
type PlanSwitch struct {
	Name string `yaml:"name"`
	// Ports is the largest number of cables of the switch, nodes included; 0: any
	// number.
	Ports int `yaml:"ports,omitempty"`
}

// PlanNodes are nodes at one switch.
type PlanNodes struct {
	At    string `yaml:"at"`
	Count int    `yaml:"count,omitempty"` // absent: 1
}

// PlanLink is a cable between two switches: a link in each direction.
type PlanLink struct {
	From   string   `yaml:"from"`
	To     string   `yaml:"to"`
	Rate   sim.Rate `yaml:"rate,omitempty"`    // absent: Spec.SwitchRate
	Wire   sim.Time `yaml:"wire,omitempty"`    // absent: Spec.SwitchWire
	OneWay bool     `yaml:"one_way,omitempty"` // there is no link back
}

// maxSwitches bounds the tables of a Plan.
const maxSwitches = 2048

func (p *PlanNodes) count() int { return max(1, p.Count) }

// check reports everything wrong with a plan, each with the field.
func (p *Plan) check() []error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("topology."+format, args...)) }
	if len(p.Switches) < 1 || len(p.Switches) > maxSwitches {
		wrong("switches: want 1 to %d, got %d", maxSwitches, len(p.Switches))
	}
	number, used := map[string]int{}, make([]int, len(p.Switches))
	for i, s := range p.Switches {
		if first, twice := number[s.Name]; twice {
			wrong("switches[%d].name: %q is the name of switches[%d], too", i, s.Name, first)
		} else if number[s.Name] = i; s.Name == "" {
			wrong("switches[%d].name: want a name", i)
		}
		if s.Ports < 0 {
			wrong("switches[%d].ports: want a number of cables, or 0 for any, got %d", i, s.Ports)
		}
	}
	plug := func(field, name string, count int) {
		if s, known := number[name]; known {
			used[s] += count
		} else {
			wrong("%s: there is no switch %q", field, name)
		}
	}
	nodes := 0
	for i, n := range p.Nodes {
		if n.Count < 0 || n.Count > MaxNodes {
			wrong("nodes[%d].count: want 1 to %d, got %d", i, MaxNodes, n.Count)
			continue
		}
		nodes += n.count()
		plug(fmt.Sprintf("nodes[%d].at", i), n.At, n.count())
	}
	if nodes < 1 || nodes > MaxNodes {
		wrong("nodes: want 1 to %d, got %d", MaxNodes, nodes)
	}
	for i, l := range p.Links {
		plug(fmt.Sprintf("links[%d].from", i), l.From, 1)
		plug(fmt.Sprintf("links[%d].to", i), l.To, 1)
		if l.From == l.To {
			wrong("links[%d].to: %q is the end that it comes from", i, l.To)
		}
		if err := l.Rate.Check(); err != nil {
			wrong("links[%d].rate: %w", i, err)
		}
		if l.Wire < 0 || l.Wire > MaxTime {
			wrong("links[%d].wire: want 1 ps to %v, got %v", i, MaxTime, l.Wire)
		}
	}
	for i, s := range p.Switches {
		if s.Ports > 0 && used[i] > s.Ports {
			wrong("switches[%d].ports: %s has %d ports, and %d cables lead to it", i, s.Name, s.Ports, used[i])
		}
	}
	if len(errs) == 0 {
		errs = p.reach()
	}
	return errs
}

// reach reports the first pair of switches with nodes that has no path.
func (p *Plan) reach() []error {
	t := p.graph().wire()
	for _, to := range p.Nodes {
		far := t.distances(t.number[to.At])
		for _, from := range p.Nodes {
			if far[t.number[from.At]] == unreachable {
				return []error{fmt.Errorf("topology.links: no path leads from switch %q, which has nodes, to %q", from.At, to.At)}
			}
		}
	}
	return nil
}

// planned is the topology of a plan.
type planned struct {
	plan   *Plan
	number map[string]int // of switches
	home   []int32        // of nodes
	links  []Link         // links to nodes first, in the order of the nodes
	names  []string
	out    [][]int32 // links to switches that leave each switch
	in     [][]int32

	// ways from next[at*switches+to] to the next element are the links that lead
	// from a switch towards another.
	next []int32
	ways []int32

	channels int
	layer    []uint8 // [source switch * nodes + destination]; nil: all are 0
}

const unreachable = math.MaxInt32

// graph returns a topology with the switches of a plan.
func (p *Plan) graph() *planned {
	t := &planned{plan: p, number: map[string]int{}, channels: 1, out: make([][]int32, len(p.Switches)), in: make([][]int32, len(p.Switches))}
	for i, s := range p.Switches {
		t.number[s.Name] = i
	}
	return t
}

// wire adds the links between switches.
func (t *planned) wire() *planned {
	parallel := map[string]int{}
	add := func(from, to string, l *PlanLink) {
		a, b := t.number[from], t.number[to]
		i := int32(len(t.links))
		t.out[a], t.in[b] = append(t.out[a], i), append(t.in[b], i)
		name := from + "->" + to
		if parallel[name]++; parallel[name] > 1 {
			name = fmt.Sprintf("%s[%d]", name, parallel[name]-1)
		}
		t.links, t.names = append(t.links, Link{From: a, To: b, Rate: l.Rate, Wire: l.Wire}), append(t.names, name)
	}
	for i := range t.plan.Links {
		l := &t.plan.Links[i]
		add(l.From, l.To, l)
		if !l.OneWay {
			add(l.To, l.From, l)
		}
	}
	return t
}

// distances returns the number of links from each switch to switch to.
func (t *planned) distances(to int) []int32 {
	far := make([]int32, len(t.out))
	for i := range far {
		far[i] = unreachable
	}
	far[to] = 0
	for queue := []int{to}; len(queue) > 0; queue = queue[1:] {
		for _, l := range t.in[queue[0]] {
			if from := t.links[l].From; far[from] == unreachable {
				far[from] = far[queue[0]] + 1
				queue = append(queue, from)
			}
		}
	}
	return far
}

// newPlanned makes the topology of the first nodes of a valid plan. With
// bounded buffers its routes get the virtual channels that they need.
func newPlanned(p *Plan, nodes int, bounded bool) (*planned, error) {
	t := p.graph()
	for _, n := range p.Nodes {
		for range n.count() {
			if len(t.home) < nodes {
				at := t.number[n.At]
				t.links = append(t.links, Link{From: at, To: len(t.home), Node: true})
				t.names = append(t.names, fmt.Sprintf("%s->Node[%d]", n.At, len(t.home)))
				t.home = append(t.home, int32(at))
			}
		}
	}
	if len(t.home) < nodes {
		return nil, fmt.Errorf("topology.nodes: the file has %d nodes, too few for %d", len(t.home), nodes)
	}
	t.wire()
	switches := len(p.Switches)
	t.next = make([]int32, switches*switches+1)
	far := make([][]int32, switches)
	for to := range switches {
		far[to] = t.distances(to)
	}
	for at := range switches {
		for to := range switches {
			for _, l := range t.out[at] {
				if d := far[to][t.links[l].To]; d != unreachable && d+1 == far[to][at] {
					t.ways = append(t.ways, l)
				}
			}
			t.next[at*switches+to+1] = int32(len(t.ways))
		}
	}
	if !bounded {
		return t, nil
	}
	if err := t.assign(); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *planned) Size() (switches, links int) { return len(t.out), len(t.links) }
func (t *planned) Home(node int) int           { return int(t.home[node]) }
func (t *planned) Link(link int) Link          { return t.links[link] }
func (t *planned) Channels() int               { return t.channels }
func (t *planned) SwitchName(s int) string     { return t.plan.Switches[s].Name }
func (t *planned) LinkName(link int) string    { return t.names[link] }

func (t *planned) Route(at, src, dst int) (link, channel int) {
	to := int(t.home[dst])
	if at == to {
		return dst, 0
	}
	i := at*len(t.out) + to
	first, behind := t.next[i], t.next[i+1]
	if t.layer != nil {
		channel = int(t.layer[int(t.home[src])*len(t.home)+dst])
	}
	return int(t.ways[int(first)+dst%int(behind-first)]), channel
}

// assign gives every path a virtual channel such that the paths of one channel
// cannot wait for each other in a circle. It takes the first channel in which
// the path closes no circle (LASH: Skeie, Lysne, Theiss, "Layered shortest path
// (LASH) routing in irregular system area networks", 2002).
func (t *planned) assign() error {
	layers := []*waits{newWaits(len(t.links))}
	layer := make([]uint8, len(t.out)*len(t.home))
	seen := make([]bool, len(t.out))
	var sources []int // the first node of each switch
	for n, s := range t.home {
		if !seen[s] {
			seen[s] = true
			sources = append(sources, n)
		}
	}
	var path []int32
	for dst := range t.home {
		for _, src := range sources {
			path = path[:0]
			for s := t.Home(src); s != t.Home(dst); {
				l, _ := t.Route(s, src, dst)
				path = append(path, int32(l))
				s = t.links[l].To
			}
			k := 0
			for ; !layers[k].add(path); k++ {
				if k+1 == MaxChannels {
					return errors.New("buffer: packets on shortest paths of this topology could wait for each other in a circle, even with " +
						fmt.Sprint(MaxChannels) + " virtual channels; want no buffer, or more links")
				}
				if k+1 == len(layers) {
					layers = append(layers, newWaits(len(t.links)))
				}
			}
			layer[int(t.home[src])*len(t.home)+dst] = uint8(k)
		}
	}
	t.layer, t.channels = layer, len(layers)
	return nil
}
