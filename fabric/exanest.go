package fabric

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// exanest is the network of the ExaNeSt prototype, of any size (TR-488 §4.1,
// §4.2). Every MPSoC has a switch between its interface and its links, and the
// MPSoCs of a QFDB are linked to each other. F1, the network MPSoC, also has
// the router. Its links lead to the routers of other QFDBs: rings in X
// (mezzanine), Y (blades of a group) and Z (groups). A packet that leaves a
// QFDB goes to F1, through its switch into the router. It follows the
// dimensions in one order, each time the shorter way round. The last router
// passes it to the switch of F1, which passes it to its MPSoC.
//
// In a ring of two, the two QFDBs have one link; in Z they have one or two.
// With two links, packets to MPSoCs of even number (F1, F3) take the first.
//
// A path of N links between QFDBs takes the time in the switch of one MPSoC,
// and in addition N times a link and N+1 times a router, as in the report. A
// link is the wire and a switch behind it, as in a QFDB. The rest of the path
// (the wires between routers and switches, and the switch of F1 at the end) is
// part of the first router.
//
// Packets on one ring could wait for each other in a circle. Two virtual
// channels prevent it, as on a torus: a packet begins each ring on channel 0
// and changes to channel 1 with the link between the last coordinate and 0.
// Rings do not wait for each other, as dimensions follow in one order. Packets
// up to the router never wait for packets down from it, because each direction
// has its own link.
type exanest struct {
	QFDBs
	spec   ExanestSpec
	nodes  int
	boards uint32
	dims   [3]uint32
	stride [3]uint32 // of boards' numbers
	order  [3]uint8  // of dimensions
	rate   sim.Rate  // inside an MPSoC
	wire   sim.Time  // inside an MPSoC
	link   sim.Time  // a link between QFDBs
	// traversal of the first router, without the part between it and the switch of
	// its MPSoC
	first sim.Time
}

// Switches of a QFDB are one for each MPSoC, then the router. Links of a QFDB
// are, for each MPSoC, one to the node and three to the others; then F1's to
// the router; then the router's to F1 and Plus and Minus of each dimension.
const (
	boardSwitches = perBoard + 1
	mpsocLinks    = perBoard
	upLink        = perBoard * mpsocLinks
	downLink      = upLink + 1
	ringLink      = downLink + 1
	boardLinks    = ringLink + 6
)

func newExanest(s *Spec, nodes int) *exanest {
	t := &exanest{
		QFDBs: s.qfdbs(), spec: s.Exanest, nodes: nodes, rate: s.Rate, wire: s.Wire,
		link: s.SwitchWire + s.Switch, first: s.Exanest.Router - 2*s.Wire - s.Switch,
	}
	if s.SwitchWire == 0 {
		t.link = s.Wire + s.Switch
	}
	t.boards = uint32(t.Boards())
	stride := 1
	for k, d := range t.QFDBs.dims() {
		t.dims[k], t.stride[k] = uint32(d), uint32(stride)
		stride *= d
		t.order[k] = s.Exanest.Order[k] - 'x'
	}
	return t
}

func (t *exanest) Size() (switches, links int) {
	return int(t.boards) * boardSwitches, int(t.boards) * boardLinks
}

func (t *exanest) Channels() int { return t.spec.Channels }

func (t *exanest) Home(node int) int { return node/perBoard*boardSwitches + node%perBoard }

// router returns the switch that is the router of a board.
func router(board int) int { return board*boardSwitches + perBoard }

func (t *exanest) Link(link int) Link {
	board, i := link/boardLinks, link%boardLinks
	first := board * boardSwitches
	switch {
	case i < upLink:
		f, port := i/mpsocLinks, i%mpsocLinks
		if port == 0 {
			node := board*perBoard + f
			if node >= t.nodes {
				node = nowhere
			}
			return Link{From: first + f, To: node, Node: node != nowhere}
		}
		return Link{From: first + f, To: first + (f+port)%perBoard}
	case i == upLink:
		return Link{From: first, To: router(board), Rate: t.rate, Wire: t.wire, Switch: t.first}
	case i == downLink:
		return Link{From: router(board), To: first, Rate: t.rate, Wire: t.wire}
	}
	return t.ring(board, (i-ringLink)/2, (i-ringLink)%2 == 1)
}

// ring returns a router's link of a dimension.
func (t *exanest) ring(board, k int, minus bool) Link {
	l := Link{From: router(board), To: nowhere, Rate: t.spec.LinkRate, Wire: t.link, Switch: t.spec.Router, Control: t.spec.Control, ControlWord: t.spec.ControlWord}
	length := int(t.dims[k])
	if length == 1 || length == 2 && minus && !t.pair(k) {
		return l
	}
	stride := int(t.stride[k])
	c := board / stride % length
	to := c + 1
	if minus {
		to = c + length - 1
	}
	l.To = router(board + (to%length-c)*stride)
	return l
}

// pair reports whether the two ends of a dimension have two links between them.
func (t *exanest) pair(k int) bool { return k == 2 && t.dims[k] == 2 && t.spec.ZLinks == 2 }

func (t *exanest) Route(at, src, dst int) (link, channel int) {
	board, i := uint32(at)/boardSwitches, uint32(at)%boardSwitches
	to, f := uint32(dst)/perBoard, uint32(dst)%perBoard
	link = int(board * boardLinks)
	switch {
	case i == perBoard && board == to:
		return link + downLink, 0
	case i == perBoard:
		out, channel := t.turn(board, uint32(src)/perBoard, uint32(dst))
		return link + ringLink + out, channel
	case board == to: // port 0 leads to the node, port p to the MPSoC p further on
		return link + int(i*mpsocLinks+(f-i)%perBoard), 0
	case i == 0:
		return link + upLink, 0
	}
	return link + int(i*mpsocLinks+perBoard-i), 0
}

// turn returns the link by which a packet from board src to node dst leaves the
// router of another board. The number counts from the first ring link.
func (t *exanest) turn(at, src, dst uint32) (out, channel int) {
	board := dst / perBoard
	for _, k := range t.order {
		length, stride := t.dims[k], t.stride[k]
		c, to := at/stride%length, board/stride%length
		if c == to {
			continue
		}
		from := src / stride % length
		out = 2 * int(k)
		if t.up(from, to, length, dst, int(k)) {
			if c+1 == length || c < from {
				channel = 1
			}
		} else {
			out++
			if c == 0 || c > from {
				channel = 1
			}
		}
		break
	}
	return out, channel & (t.spec.Channels - 1)
}

// up reports whether the path from one coordinate of a ring to another leads
// towards higher ones.
func (t *exanest) up(from, to, length, dst uint32, k int) bool {
	switch d := (to + length - from) % length; {
	case 2*d != length:
		return 2*d < length
	case length == 2:
		return !t.pair(k) || dst%2 == 0
	}
	switch t.spec.Ties {
	case tiesSource:
		return from%2 == 0
	case tiesDestination:
		return dst%2 == 0
	}
	return true
}

// place returns the place of the first MPSoC of a switch's board.
func (t *exanest) place(s int) Place { return t.Place(s / boardSwitches * perBoard) }

// SwitchName names the switch of an MPSoC like the MPSoC, M1QAF1, and a router
// like its board with an R, M1QAR.
func (t *exanest) SwitchName(s int) string {
	name, i := t.Board(t.place(s)), s%boardSwitches
	if i == perBoard {
		return name + "R"
	}
	return fmt.Sprintf("%sF%d", name, i+1)
}

// LinkName names a link by its ends: M1QAF1->M1QAR. The second of two links
// between the same ends gets the suffix [1].
func (t *exanest) LinkName(link int) string {
	l := t.Link(link)
	var b strings.Builder
	b.WriteString(t.SwitchName(l.From))
	b.WriteString("->")
	switch i := link % boardLinks; {
	case l.Node:
		fmt.Fprintf(&b, "Node[%d]", l.To)
	case l.To == nowhere:
		fmt.Fprintf(&b, "nowhere[%d]", i)
	default:
		b.WriteString(t.SwitchName(l.To))
		if i >= ringLink && t.pair((i-ringLink)/2) && (i-ringLink)%2 == 1 {
			b.WriteString("[1]")
		}
	}
	return b.String()
}
