package goal

import (
	"fmt"
	"iter"
)

// Any is the wildcard: as the peer of a receive it matches every source, as a
// tag every tag. The text format writes it as -1.
const Any = ^uint32(0)

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
	// Tag must be equal in a send and its receive; Any equals every tag. Calc
	// does not use it.
	Tag uint32
	// Size is in bytes, for Calc in nanoseconds.
	Size uint64
}

// packed is the stored form of an operation. Its successors are in
// Schedule.succ. From done to start are the operations that it releases when it
// is done. From start to the done of the next operation are those that it
// releases when it starts.
type packed struct {
	size  uint64
	peer  uint32
	tag   uint32
	deps  uint32
	done  uint32
	start uint32
	kind  Kind
	cpu   uint8
	nic   uint8
}

// span is the place of a rank's operations in Schedule.ops.
type span struct{ first, n uint32 }

// Schedule holds the operations of all ranks. It does not change once it is
// built, so it may be shared.
type Schedule struct {
	ops    []packed
	succ   []uint32 // indices within the rank
	ranks  []span
	maxCPU uint8
	maxNIC uint8
	names  *names // nil: neither labels nor lines were kept
}

// names holds the labels and lines of operations in the text, for error
// reports.
type names struct {
	bytes []byte
	// per span, in order of operations: start of the rank's labels in bytes
	base   []uint64
	origin []uint32 // per span: its first operation
	// per operation: end of its label, relative to base; it starts at the end
	// of the previous label
	end  []uint32
	line []uint32
}

// Ranks returns the number of ranks.
func (s *Schedule) Ranks() int { return len(s.ranks) }

// Len returns the number of operations of all ranks.
func (s *Schedule) Len() int { return len(s.ops) }

// MaxCPU returns the largest processor index a rank of the schedule may use.
func (s *Schedule) MaxCPU() uint8 { return s.maxCPU }

// MaxNIC returns the largest network interface index a rank of the schedule may use.
func (s *Schedule) MaxNIC() uint8 { return s.maxNIC }

// Named reports whether the labels and lines of the text were kept.
func (s *Schedule) Named() bool { return s.names != nil }

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
	p := r.packed(i)
	return Op{Kind: p.kind, CPU: p.cpu, NIC: p.nic, Peer: p.peer, Tag: p.tag, Size: p.size}
}

// Deps returns the number of releases that operation i waits for. With 0 it is
// ready at the start.
func (r Rank) Deps(i int) int { return int(r.packed(i).deps) }

// AfterDone returns the operations that operation i releases when it is done,
// in the order of the schedule. An operation with a repeated dependency appears
// as often. Do not change the slice.
func (r Rank) AfterDone(i int) []uint32 {
	p := r.packed(i)
	return r.s.succ[p.done:p.start]
}

// AfterStart returns the operations that operation i releases when it starts, like AfterDone.
func (r Rank) AfterStart(i int) []uint32 {
	at := int(r.at.first) + i
	return r.s.succ[r.s.ops[at].start:r.s.succEnd(at)]
}

// Label returns the label of operation i, or "" if it has none or labels were not kept.
func (r Rank) Label(i int) string { return r.s.label(int(r.at.first) + i) }

// Line returns the line of the text that declares operation i, or 0 if lines were not kept.
func (r Rank) Line(i int) int {
	if r.s.names == nil {
		return 0
	}
	return int(r.s.names.line[int(r.at.first)+i])
}

func (r Rank) packed(i int) *packed {
	return &r.s.ops[r.at.first : r.at.first+r.at.n][i]
}

// succEnd returns the end of the successors of operation at.
func (s *Schedule) succEnd(at int) uint32 {
	if at+1 < len(s.ops) {
		return s.ops[at+1].done
	}
	return uint32(len(s.succ))
}

func (s *Schedule) label(at int) string {
	if s.names == nil {
		return ""
	}
	from, to := s.names.span(at)
	return string(s.names.bytes[from:to])
}

// span returns the place of an operation's label.
func (n *names) span(at int) (from, to uint64) {
	lo, hi := 0, len(n.origin)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); int(n.origin[mid]) <= at {
			lo = mid
		} else {
			hi = mid
		}
	}
	if at > int(n.origin[lo]) {
		from = uint64(n.end[at-1])
	}
	return n.base[lo] + from, n.base[lo] + uint64(n.end[at])
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
