package fabric

import "fmt"

// FatTree is a k-ary n-tree of switches with Spec.Radix ports, no higher than
// its nodes need.
const FatTree = "fat-tree"

var radixField = &field{name: "radix"}

// Values of Spec.Paths. But with ByPacket and ByLoad, packets from one node to
// another take one path, and so arrive in order.
const (
	ByDestination = "destination" // D-mod-k: no permutation by a shift shares a link
	ByFlow        = "flow"        // ECMP: a hash of source and destination chooses
	// ByPacket is spraying: a hash of source, destination and Packet.Path chooses.
	// Packets of a pair may pass each other.
	ByPacket = "packet"
	// ByLoad is adaptive routing: each switch compares Spec.Choices of its ways,
	// drawn by a hash of the packet, and takes the one with the least load. Packets
	// of a pair may pass each other.
	ByLoad = "load"
)

// spread reports whether packets of a pair may take different ways.
func (s *Spec) spread() bool { return s.Paths == ByPacket || s.Paths == ByLoad }

var pathsField = &field{
	name: "paths",
	set: func(s *Spec) []string {
		if s.Paths == "" {
			return nil
		}
		return []string{fmt.Sprintf("paths: %s", s.Paths)}
	},
	clear: func(s *Spec) { s.Paths = "" },
}

var choicesField = numberField("choices", func(s *Spec) *int { return &s.Choices })

var fatTreeKind = &kind{
	name:   FatTree,
	fields: []*field{radixField, pathsField, choicesField},
	check: func(s *Spec) (errs []error) {
		if s.Radix < 4 || s.Radix%2 != 0 || s.Radix > MaxNodes {
			errs = append(errs, fmt.Errorf("radix: want an even number from 4 to %d, got %d", MaxNodes, s.Radix))
		}
		return append(errs, s.checkPaths()...)
	},
	build: func(s *Spec, nodes int) (Topology, error) {
		t := newTree(s.Radix, nodes)
		t.flows = s.Paths == ByFlow || s.spread()
		return t, nil
	},
}

// maxChoices bounds Spec.Choices.
const maxChoices = 64

func (s *Spec) checkPaths() (errs []error) {
	switch s.Paths {
	case "", ByDestination, ByFlow, ByPacket, ByLoad:
	default:
		errs = append(errs, fmt.Errorf("paths: want %s, %s, %s or %s, got %q", ByDestination, ByFlow, ByPacket, ByLoad, s.Paths))
	}
	if byLoad := s.Paths == ByLoad; s.Choices < 0 || s.Choices > maxChoices || s.Choices > 0 != byLoad {
		errs = append(errs, fmt.Errorf("choices: want 1 to %d with paths %s, 0 with others, got %d", maxChoices, ByLoad, s.Choices))
	}
	return errs
}

// tree is a k-ary n-tree of radix-k switches, m = k/2. Levels count from 0 at
// the nodes. The switches of the top level have k ports down, the others m down
// and m up. A crossbar is a tree of one level whose radix is the number of
// nodes.
//
// Written in digits, node x is (d[n-1] … d[1] d[0]), with base m, but base k
// for d[n-1]. The name of a switch of level l is the digits above l of the
// nodes below it, and the l choices on the way up to it. The choice at level l
// is d[l] of the destination (D-mod-k): packets to one node share one path
// down, and packets to different nodes below one edge switch come down
// different ones. With ByFlow it is a digit of a hash. Paths go up, then down,
// so packets cannot wait for each other in a circle.
type tree struct {
	nodes int
	half  uint32 // m; unused for a crossbar
	flows bool   // ByFlow, or packets of a pair take different ways
	// [l] is the number of nodes below a switch of level l-1, and of ways up to a
	// switch of level l
	span   []uint32
	levels []level
}

// level is the switches of one level that have a node below them.
type level struct {
	first     uint32 // switch
	firstPort uint32 // link
	width     uint32 // ports of each switch; at the top only those with a node below
	ways      uint32 // m^l: nodes below a port down, and ways up to a switch
	below     uint32 // nodes below a switch
	fan       uint32 // below / ways
	count     int
}

func newTree(radix, count int) *tree {
	t := &tree{nodes: count, half: uint32(radix / 2)}
	ways := 1 // m^l: nodes below a port down, and ways up to a switch, of level l
	t.span = []uint32{1}
	for ; ways*radix < count; ways *= radix / 2 {
		t.addLevel(ways, ways*radix/2, radix)
	}
	t.addLevel(ways, ways*radix, (count+ways-1)/ways)
	return t
}

// addLevel adds the switches of the next level, each with below nodes below it.
func (t *tree) addLevel(ways, below, width int) {
	next := level{
		count: (t.nodes + below - 1) / below * ways, width: uint32(width), ways: uint32(ways), below: uint32(below), fan: uint32(below / ways),
	}
	if n := len(t.levels); n > 0 {
		last := &t.levels[n-1]
		next.first = last.first + uint32(last.count)
		next.firstPort = last.firstPort + uint32(last.count)*last.width
	}
	t.span = append(t.span, uint32(below))
	t.levels = append(t.levels, next)
}

func (t *tree) Size() (switches, links int) {
	top := &t.levels[len(t.levels)-1]
	return int(top.first) + top.count, int(top.firstPort) + top.count*int(top.width)
}

func (t *tree) Channels() int { return 1 }

func (t *tree) Home(node int) int { return t.at(0, uint32(node), 0) }

// at returns the switch of level l that is above node x and on the way to dst.
func (t *tree) at(l int, x, dst uint32) int {
	ways := t.span[l]
	return int(t.levels[l].first + x/t.span[l+1]*ways + dst%ways)
}

func (t *tree) Route(at, src, dst int) (link, channel int) {
	return t.route(uint32(at), uint32(src), uint32(dst), 0), 0
}

func (t *tree) routeBy(at, src, dst int, path uint32) int {
	return t.route(uint32(at), uint32(src), uint32(dst), path)
}

// route leads down if the switch is above the destination. Ports up follow
// ports down.
func (t *tree) route(at, src, dst, path uint32) int {
	if len(t.levels) == 1 {
		return int(dst)
	}
	l := 0
	for l+1 < len(t.levels) && at >= t.levels[l+1].first {
		l++
	}
	v := &t.levels[l]
	at -= v.first
	out := dst / v.ways
	if group := out / v.fan; at/v.ways == group {
		out -= group * v.fan
	} else if t.flows {
		out = t.half + mixed(src, dst|path<<nodeBits, l)%t.half
	} else {
		out = t.half + out%t.half
	}
	return int(v.firstPort + at*v.width + out)
}

// mixed is a hash of a flow, another one on each level: the finaliser of
// splitmix64.
func mixed(src, dst uint32, level int) uint32 {
	x := (uint64(src)<<32 | uint64(dst)) + uint64(level+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint32(x >> 32)
}

// port returns level, switch of the level and port of a link.
func (t *tree) port(link int) (l, s, port int) {
	for l+1 < len(t.levels) && link >= int(t.levels[l+1].firstPort) {
		l++
	}
	v := &t.levels[l]
	link -= int(v.firstPort)
	return l, link / int(v.width), link % int(v.width)
}

func (t *tree) Link(link int) Link {
	l, s, port := t.port(link)
	from, ways := int(t.levels[l].first)+s, int(t.span[l])
	high, low := s/ways, s%ways
	if t.isUp(l, port) {
		group := high / int(t.span[l+2]/t.span[l+1])
		return Link{From: from, To: int(t.levels[l+1].first) + group*int(t.span[l+1]) + (port-int(t.half))*ways + low}
	}
	child := high*int(t.span[l+1])/ways + port // in units of the nodes below a port of level l
	if child*ways >= t.nodes {
		return Link{From: from, To: nowhere}
	}
	if l == 0 {
		return Link{From: from, To: child, Node: true}
	}
	below := int(t.span[l-1])
	return Link{From: from, To: int(t.levels[l-1].first) + child*below + low%below}
}

func (t *tree) isUp(level, port int) bool { return level < len(t.levels)-1 && port >= int(t.half) }

// SwitchName names a switch by level and index.
func (t *tree) SwitchName(s int) string {
	l := 0
	for s >= t.levels[l].count {
		s -= t.levels[l].count
		l++
	}
	return fmt.Sprintf("Switch[%d][%d]", l, s)
}

func (t *tree) LinkName(link int) string {
	level, s, port := t.port(link)
	if t.isUp(level, port) {
		return fmt.Sprintf("Switch[%d][%d].Up[%d]", level, s, port-int(t.half))
	}
	return fmt.Sprintf("Switch[%d][%d].Down[%d]", level, s, port)
}
