package fabric

import "fmt"

// Dragonfly is groups of routers: a router has Spec.LeafNodes nodes, a link to each
// other router of its group, and Spec.Globals links to other groups (Kim et al.,
// ISCA 2008).
const Dragonfly = "dragonfly"

var dragonflyKind = &kind{
	name: Dragonfly,
	fields: []*field{
		leafNodesField,
		numberField("group", func(s *Spec) *int { return &s.Group }),
		numberField("globals", func(s *Spec) *int { return &s.Globals }),
		{
			name:  "global_wire",
			clear: func(s *Spec) { s.GlobalWire = 0 },
			set: func(s *Spec) []string {
				if s.GlobalWire == 0 {
					return nil
				}
				return []string{fmt.Sprintf("global_wire: %v", s.GlobalWire)}
			},
		},
		pathsField,
	},
	check: checkDragonfly,
	most: func(s *Spec) int {
		return min(MaxNodes, s.LeafNodes*s.Group*(s.Group*s.Globals+1))
	},
	build: func(s *Spec, nodes int) (Topology, error) {
		t := newDragonfly(s, nodes)
		if most := s.LeafNodes * s.Group * (s.Group*s.Globals + 1); nodes > most {
			return nil, fmt.Errorf("leaf_nodes, group, globals: a dragonfly of %d groups has %d nodes, too few for %d", s.Group*s.Globals+1, most, nodes)
		}
		if _, links := t.Size(); links > maxLinks {
			return nil, fmt.Errorf("group, globals: %d links, want at most %d", links, maxLinks)
		}
		return t, nil
	},
}

// maxGroup bounds the routers of a group and the links of a router to other
// groups.
const maxGroup = 1 << 8

func checkDragonfly(s *Spec) (errs []error) {
	errs = s.checkLeafNodes()
	if s.Group < 1 || s.Group > maxGroup {
		errs = append(errs, fmt.Errorf("group: want 1 to %d routers, got %d", maxGroup, s.Group))
	}
	if s.Globals < 1 || s.Globals > maxGroup {
		errs = append(errs, fmt.Errorf("globals: want 1 to %d links, got %d", maxGroup, s.Globals))
	}
	if s.GlobalWire < 0 || s.GlobalWire > MaxTime {
		errs = append(errs, fmt.Errorf("global_wire: want 0 (as switch_wire) to %v, got %v", MaxTime, s.GlobalWire))
	}
	switch s.Paths {
	case "", ByDestination, ByFlow, ByPacket:
	default:
		// a router that chose by load anew could send a packet round in a circle
		errs = append(errs, fmt.Errorf("paths: want %s, %s or %s with kind %s, got %q", ByDestination, ByFlow, ByPacket, Dragonfly, s.Paths))
	}
	if s.Paths == ByPacket && len(s.Buffer) > 0 {
		errs = append(errs, fmt.Errorf("paths: with bounded buffers want %s or %s with kind %s, got %q", ByDestination, ByFlow, Dragonfly, s.Paths))
	}
	return errs
}

// dragonfly has as many groups as its nodes need. Router r is number r mod Group of
// group r / Group. Its links lead down to its nodes, to the other routers of the
// group from the next one on, and to other groups.
//
// The global links of a group are numbered over its routers. Link k leads to the
// group k+1 further on, round and round if there are fewer groups than links: then
// two groups have several links, and the destination chooses one. Links behind the
// last whole round lead nowhere.
//
// The shortest way has at most one link of the own group, one between groups and
// one of the other group. With ByFlow or ByPacket packets go over a group by chance
// (Valiant), which may be one of the two: then the way is the shortest. With
// ByPacket path 0 takes the shortest, too. A packet is
// on the channel that counts the links between groups that it has passed, so no
// packets wait for each other in a circle.
type dragonfly struct {
	nodes, down, group, globals int
	groups, copies              int
	wire                        Link // of links between groups
	chance                      bool
	packets                     bool // ByPacket
}

func newDragonfly(s *Spec, nodes int) *dragonfly {
	t := &dragonfly{
		nodes: nodes, down: s.LeafNodes, group: s.Group, globals: s.Globals, copies: 1,
		wire: Link{Wire: s.GlobalWire}, chance: s.Paths == ByFlow || s.spread(), packets: s.spread(),
	}
	of := t.down * t.group
	if t.groups = (nodes + of - 1) / of; t.groups > 1 {
		t.copies = max(1, t.group*t.globals/(t.groups-1))
	}
	return t
}

// ports is how many links leave a router.
func (t *dragonfly) ports() int { return t.down + t.group - 1 + t.globals }

func (t *dragonfly) Size() (switches, links int) {
	return t.groups * t.group, t.groups * t.group * t.ports()
}

func (t *dragonfly) Channels() int {
	if t.chance {
		return 3
	}
	return 2
}

func (t *dragonfly) Home(node int) int { return node / t.down }

func (t *dragonfly) Route(at, src, dst int) (link, channel int) { return t.route(at, src, dst, 0) }

func (t *dragonfly) routeBy(at, src, dst int, path uint32) int {
	link, _ := t.route(at, src, dst, path)
	return link
}

func (t *dragonfly) route(at, src, dst int, path uint32) (link, channel int) {
	last := dst / t.down
	from, here, to := src/t.down/t.group, at/t.group, last/t.group
	over := from // a group between, or one of the two
	if t.chance && from != to && !(t.packets && path == 0) {
		over = int(mixed(uint32(src), uint32(dst)|path<<nodeBits, 1) % uint32(t.groups))
	}
	if over == to {
		over = from
	}
	switch {
	case here == to && at == last:
		return at*t.ports() + dst%t.down, 0
	case here == to && from == to:
		return t.local(at, last), 0
	case here == to && over == from:
		return t.local(at, last), 1
	case here == to:
		return t.local(at, last), 2
	case here == over && over != from:
		channel = 1
	case over != from:
		to = over
	}
	k := (to - here - 1 + t.groups) % t.groups
	k += dst % t.copies * (t.groups - 1)
	if gate := here*t.group + k/t.globals; gate != at {
		return t.local(at, gate), channel
	}
	return at*t.ports() + t.down + t.group - 1 + k%t.globals, channel
}

// local is the link to another router of the group.
func (t *dragonfly) local(at, to int) int {
	return at*t.ports() + t.down + (to-at-1+t.group)%t.group
}

func (t *dragonfly) Link(link int) Link {
	at, port := link/t.ports(), link%t.ports()
	if port < t.down {
		if node := at*t.down + port; node < t.nodes {
			return Link{From: at, To: node, Node: true}
		}
		return Link{From: at, To: nowhere}
	}
	here, number := at/t.group, at%t.group
	if port -= t.down; port < t.group-1 {
		return Link{From: at, To: here*t.group + (number+port+1)%t.group}
	}
	k := number*t.globals + port - (t.group - 1)
	l := t.wire
	l.From, l.To = at, nowhere
	if round := t.groups - 1; k < t.copies*round {
		// the other end is the link back of the same copy
		to, back := (here+k%round+1)%t.groups, round-1-k%round+k/round*round
		l.To = to*t.group + back/t.globals
	}
	return l
}

// SwitchName names a router by group and number.
func (t *dragonfly) SwitchName(s int) string {
	return fmt.Sprintf("Router[%d][%d]", s/t.group, s%t.group)
}

func (t *dragonfly) LinkName(link int) string {
	at, port := link/t.ports(), link%t.ports()
	switch local := port - t.down; {
	case local < 0:
		return fmt.Sprintf("%s.Down[%d]", t.SwitchName(at), port)
	case local < t.group-1:
		return fmt.Sprintf("%s.Local[%d]", t.SwitchName(at), (at%t.group+local+1)%t.group)
	default:
		return fmt.Sprintf("%s.Global[%d]", t.SwitchName(at), local-(t.group-1))
	}
}
