//go:build !tinygo

package datatype

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/spinsim/spinsim/datatype"
)

// Cost is the cost of a strategy in the loader's model.
type Cost struct {
	Strategy uint32
	Cycles   float64 // of a payload handler, mean over the packets of a message
	Memory   int64   // HPU memory for state, tree and the strategy's data behind it; bytes
	Err      error   // why the strategy is impossible; nil: it is possible
}

// StrategyNames are the names of the strategies, by their constants.
var StrategyNames = [...]string{Vector: "vector", General: "general", ReadOnly: "read-only", Progressing: "progressing"}

// Costs of parts of the code of unpack, in cycles. They are a least-squares fit
// to 133 types with the cost table of sPIN's profiles (median of the deviations
// 1%). TestCostModel in package experiment compares the model with the
// simulator. A change of the handlers, or of their compiler, changes these
// costs.
const (
	vectorPacket = 102  // Vector: a packet
	vectorRun    = 12.5 // and each of its runs

	packetCycles = 163.5 // ReadOnly: a packet, checkpoint included
	frameCycles  = 16.2  // and each frame of it
	innerCycles  = 59    // an innermost loop that is begun or continued
	flatCycles   = 13.1  // a run of it
	splitCycles  = 19.1  // a run of it that ends in the next packet
	outerCycles  = 102   // an iteration of any other loop
	beginCycles  = -44.4 // its first one
	blockCycles  = 18    // an entry of a table of bytes
	cutCycles    = 30.4  // one that ends in the next packet
	partCycles   = 125   // an entry of a table of nodes

	// General takes as much, except for finding the place of its packets.
	seekCycles     = -75.3 // at the beginning, instead of a checkpoint
	levelCycles    = 5.9   // each node on the way
	divisionCycles = 75.9  // a division for an iteration, except for the first packet
	searchCycles   = 7.7   // a step of a binary search, likewise
	// Progressing costs as much as General if the previous packet is not over.
	// It also leaves a checkpoint, except after the last packet.
	slotCycles = 90
	saveCycles = 57
)

// steps counts how often parts of the code run for a message, without what
// begins with each packet.
type steps struct{ runs, flat, inner, outer, begun, blocks, parts float64 }

func (s *steps) add(t *steps, times float64) {
	s.runs += times * t.runs
	s.flat += times * t.flat
	s.inner += times * t.inner
	s.outer += times * t.outer
	s.begun += times * t.begun
	s.blocks += times * t.blocks
	s.parts += times * t.parts
}

// stepsOf counts over the nodes of a type, each once: types may share parts.
func stepsOf(n *datatype.Node, known map[*datatype.Node]*steps) *steps {
	if s := known[n]; s != nil {
		return s
	}
	s := &steps{}
	switch {
	case n.Kind == datatype.Leaf:
		s.runs = 1
	case n.Kind == datatype.Loop && n.Child.Kind == datatype.Leaf:
		s.runs, s.flat, s.inner = float64(n.Count), float64(n.Count-1), 1
	case n.Kind == datatype.Loop:
		s.outer, s.begun = float64(n.Count-1), 1
		s.add(stepsOf(n.Child, known), float64(n.Count))
	case n.Kind == datatype.Blocks:
		s.runs, s.blocks = float64(len(n.Places)), float64(len(n.Places)-1)
	default:
		s.parts = float64(len(n.Places) - 1)
		for _, p := range n.Parts {
			s.add(stepsOf(p, known), 1)
		}
	}
	known[n] = s
	return s
}

// seek is how many divisions and steps of searches a look-up needs, mean over
// the bytes.
type seek struct{ divisions, searches float64 }

func seekOf(n *datatype.Node, known map[*datatype.Node]seek) seek {
	s, ok := known[n]
	if ok || n.Kind == datatype.Leaf {
		return s
	}
	if n.Kind == datatype.Loop {
		s = seekOf(n.Child, known)
		s.divisions++
	} else {
		s.searches = float64(bits.Len(uint(len(n.Places) - 1)))
	}
	if n.Kind == datatype.List {
		for _, p := range n.Parts {
			part, share := seekOf(p, known), float64(p.Size)/float64(n.Size)
			s.divisions += part.divisions * share
			s.searches += part.searches * share
		}
	}
	known[n] = s
	return s
}

// plain reports whether a type is equal blocks at equal distances.
func plain(root *datatype.Node) bool {
	return root.Kind == datatype.Leaf || root.Kind == datatype.Loop && root.Child.Kind == datatype.Leaf
}

// errUneven is the reason why Vector is impossible.
var errUneven = errors.New("the type is no blocks of one length at one distance")

// costs returns the cost of each strategy.
func (p *Program) costs(root *datatype.Node, o *Options) (all [len(StrategyNames)]Cost) {
	depth := float64(p.State.Depth)
	packets := (int64(p.State.Size) + int64(o.Packet) - 1) / int64(o.Packet)
	n := float64(packets)
	s, way := stepsOf(root, map[*datatype.Node]*steps{}), seekOf(root, map[*datatype.Node]seek{})
	splits := n - 1 // runs that end in the next packet
	if even := root.Size / int64(s.runs); plain(root) && int64(o.Packet)%even == 0 {
		splits = 0
	}
	walk := flatCycles*s.flat + innerCycles*s.inner + outerCycles*s.outer + beginCycles*s.begun + blockCycles*s.blocks + partCycles*s.parts
	if s.flat > 0 {
		// each packet continues with a loop
		walk += splitCycles*splits + innerCycles*min(n, max(0, s.runs+splits-n))
	} else if s.blocks > 0 {
		walk += cutCycles * splits
	}
	later := (n - 1) / n
	read := packetCycles + frameCycles*depth + walk/n
	general := read + seekCycles + levelCycles*depth + later*(divisionCycles*way.divisions+searchCycles*way.searches)
	memory := int64(unsafe.Sizeof(p.State)) + int64(len(p.Behind))
	all = [...]Cost{
		{Strategy: Vector, Cycles: vectorPacket + vectorRun*(s.runs+splits)/n, Memory: memory},
		{Strategy: General, Cycles: general, Memory: memory},
		{Strategy: ReadOnly, Cycles: read, Memory: memory + packets*p.record()},
		{Strategy: Progressing, Cycles: general + slotCycles + later*saveCycles, Memory: memory + Slots*SlotSize},
	}
	for i := range all {
		if all[i].Memory > o.Memory {
			all[i].Err = fmt.Errorf("%w: %d B of %d", ErrLarge, all[i].Memory, o.Memory)
		}
	}
	if !plain(root) {
		all[Vector].Err = errUneven
	}
	return all
}

// record returns the size of a checkpoint of ReadOnly, bytes.
func (p *Program) record() int64 { return int64(HeadSize + p.State.Depth*FrameSize) }

// why describes the choice, and the costs of the other strategies.
func (p *Program) why(asked bool) string {
	var b strings.Builder
	c := &p.Costs[p.State.Strategy]
	fmt.Fprintf(&b, "%s: %.0f cycles a packet in %d B of HPU memory", StrategyNames[c.Strategy], c.Cycles, c.Memory)
	if asked {
		b.WriteString(", as asked for")
	}
	for _, other := range p.Costs {
		switch {
		case other.Strategy == c.Strategy:
		case errors.Is(other.Err, errUneven):
			b.WriteString("; no vector: blocks or distances differ")
		case other.Err != nil:
			fmt.Fprintf(&b, "; no %s: %d B", StrategyNames[other.Strategy], other.Memory)
		default:
			fmt.Fprintf(&b, "; %s: %.0f in %d B", StrategyNames[other.Strategy], other.Cycles, other.Memory)
		}
	}
	return b.String()
}
