package goal

import (
	"fmt"
	"iter"
	"slices"
)

// The wildcards: Any as the peer of a receive matches every source, AnyTag every
// tag. The text format writes them as -1.
const (
	Any    = ^uint32(0)
	AnyTag = ^uint64(0)
)

// MaxOps is the largest number of operations in a schedule: the event key of
// the simulator has 30 bits for them.
const MaxOps = 1<<30 - 1

// Kind is the kind of an operation. The values come from the binary format.
type Kind uint8

// The kinds of operations.
const (
	Send Kind = 1 // sends Size bytes to Peer
	Recv Kind = 2 // receives from Peer, or from any rank
	Calc Kind = 3 // computes for Size nanoseconds
)

// String returns the keyword of the text format.
func (k Kind) String() string {
	switch k {
	case Send:
		return "send"
	case Recv:
		return "recv"
	case Calc:
		return "calc"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Op is one operation of a rank.
type Op struct {
	// Kind is Send, Recv or Calc.
	Kind Kind
	// CPU is the index of the rank's processor that the operation keeps busy.
	CPU uint8
	// NIC is the index of the network interface. Calc does not use it.
	NIC uint8
	// Peer is the target of a send, the source of a receive or Any; Calc does not use it.
	Peer uint32
	// Tag must be equal in a send and its receive; AnyTag equals every tag. Calc
	// does not use it. The binary format holds tags below 2^32-1.
	Tag uint64
	// Size is in bytes, for Calc in nanoseconds.
	Size uint64
}

// span is the place of a rank's operations in the store.
type span struct{ first, n uint32 }

// Schedule holds the operations of all ranks. It does not change once it is
// built, so it may be shared.
type Schedule struct {
	store

	ranks  []span
	ops    int // of all ranks
	maxCPU uint8
	maxNIC uint8
	names  bool // labels and lines were kept
	colls  []Collective
}

// Ranks returns the number of ranks.
func (s *Schedule) Ranks() int { return len(s.ranks) }

// Len returns the number of operations of all ranks.
func (s *Schedule) Len() int { return s.ops }

// MaxCPU returns the largest processor index a rank of the schedule may use.
func (s *Schedule) MaxCPU() uint8 { return s.maxCPU }

// MaxNIC returns the largest network interface index a rank of the schedule may use.
func (s *Schedule) MaxNIC() uint8 { return s.maxNIC }

// Named reports whether the labels and lines of the text were kept.
func (s *Schedule) Named() bool { return s.names }

// Rank returns the operations of one rank, 0 <= r < Ranks().
func (s *Schedule) Rank(r int) Rank { return Rank{s, s.ranks[r]} }

// All iterates over the ranks in order.
func (s *Schedule) All() iter.Seq2[int, Rank] {
	return func(yield func(int, Rank) bool) {
		for r := range s.ranks {
			if !yield(r, s.Rank(r)) {
				return
			}
		}
	}
}

// Rank is a view of the operations of one rank. Operations are numbered from 0
// in order of declaration.
type Rank struct {
	s  *Schedule
	at span
}

// Len returns the number of operations.
func (r Rank) Len() int { return int(r.at.n) }

// Op returns operation i.
func (r Rank) Op(i int) Op {
	id := r.id(i)
	p, u := r.s.at(id), r.s.unit(id)
	return Op{Kind: p.kind(), CPU: u.cpu, NIC: u.nic, Peer: p.peer, Tag: r.s.tag(id), Size: r.s.size(id)}
}

// Deps returns the number of releases that operation i waits for. With 0 it is
// ready at the start.
func (r Rank) Deps(i int) int { return int(r.s.deps(r.id(i))) }

// AfterDone iterates over the operations that operation i releases when it is
// done, in the order of the schedule. An operation with a repeated dependency
// appears as often.
func (r Rank) AfterDone(i int) iter.Seq[int] { return r.after(i, false) }

// AfterStart iterates over the operations that operation i releases when it
// starts, like AfterDone.
func (r Rank) AfterStart(i int) iter.Seq[int] { return r.after(i, true) }

func (r Rank) after(i int, start bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		for e := r.s.edges(r.id(i)); len(e.list) > 0; {
			if x, atStart := e.next(); atStart == start && !yield(int(x-r.at.first)) {
				return
			}
		}
	}
}

// Label returns the label of operation i, or "" if it has none or labels were not kept.
func (r Rank) Label(i int) string {
	label, _ := r.s.named(r.id(i))
	return string(label)
}

// Line returns the line of the text that declares operation i, or 0 if lines were not kept.
func (r Rank) Line(i int) int {
	_, line := r.s.named(r.id(i))
	return line
}

func (r Rank) id(i int) uint32 {
	if uint(i) >= uint(r.at.n) {
		panic(fmt.Sprintf("goal: operation %d of %d", i, r.at.n)) //lint:panic a bug of the caller, as for a slice
	}
	return r.at.first + uint32(i)
}

// WideTag returns the first operation with a tag above 2^32-2, which only the
// text form can hold; wide: there is one.
func (s *Schedule) WideTag() (r OpRef, wide bool) {
	if !slices.ContainsFunc(s.segments, func(c segment) bool { return c.high != nil }) {
		return r, false
	}
	for rank, v := range s.All() {
		for i := range v.Len() {
			if wideTag(s.tag(v.id(i))) {
				return s.Ref(rank, i), true
			}
		}
	}
	return r, false
}

// OpRef describes an operation of a schedule to a reader.
type OpRef struct {
	// Rank is the rank, Index the number of the operation in the rank, from 0.
	Rank  int `json:"rank"`
	Index int `json:"index"`
	// Label and Line come from the text; "" and 0 if they were not kept.
	Label string `json:"label,omitempty"`
	Line  int    `json:"line,omitempty"`
	// Op is the operation itself.
	Op Op `json:"-"`
}

// Ref describes operation i of rank r.
func (s *Schedule) Ref(r, i int) OpRef {
	v := s.Rank(r)
	return OpRef{Rank: r, Index: i, Label: v.Label(i), Line: v.Line(i), Op: v.Op(i)}
}

// String names the operation by rank, label and line, and describes it.
func (r OpRef) String() string {
	name := fmt.Sprintf("rank %d operation %d", r.Rank, r.Index)
	if r.Label != "" {
		name = fmt.Sprintf("rank %d %s", r.Rank, r.Label)
	}
	if r.Line > 0 {
		name += fmt.Sprintf(" (line %d)", r.Line)
	}
	return name + ": " + r.Op.String()
}

// String returns the operation in the text format.
func (o Op) String() string { return string(appendOp(nil, o)) }
