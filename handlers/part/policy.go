//go:build !tinygo

package part

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// Range is the addresses from Start up to End.
type Range struct{ Start, End uint64 }

func (r Range) has(addr uint64) bool { return addr >= r.Start && addr < r.End }

// within cuts a range to whole pages of another.
func (r Range) within(of Range) Range {
	r.Start = max(r.Start&^(host.PageBytes-1), of.Start)
	r.End = min((min(r.End, of.End)+host.PageBytes-1)&^(host.PageBytes-1), of.End)
	return r
}

// Fault is a question to a policy.
type Fault struct {
	Page    uint64 // address of the absent page
	Source  bool   // at the source of a transfer, else at its destination
	Mapping Range  // of the process, around the page; nobody knows how far the transfer goes
	// Node and Process own the page.
	Node    int
	Process *host.Process
	// Block is the attempt whose cell met the page. It is the zero Block if
	// only the registers of the SMMU are known: for a fault at a source, or one
	// for which the FIFO had no room.
	Block Block
	// At is the time of the question.
	At sim.Time
}

// Block names an attempt to send a block. Equal blocks are the same attempt, as
// long as sequence numbers of 14 bits do not wrap.
type Block struct {
	Known       bool   // false: all else is zero
	Node        uint32 // that sends it
	PID         uint32 // its process there
	Transaction uint32 // 14 bits
	Sequence    uint32 // 14 bits, another with each attempt
}

// Plan is a policy's answer.
type Plan struct {
	// First is brought in before the block is asked for. If it does not include
	// the page, only the page is brought in.
	First Range
	// Then is brought in after that; an empty range means nothing.
	Then Range
	// Search means that the driver looks for the end of what is wanted, which
	// takes os.fault_search.
	Search bool
	// Took is the time of the policy itself on the driver's core. For the published
	// policies it is part of the driver's times.
	Took sim.Time
}

// Policy decides what to bring in for a page fault. It is asked for each page
// that was absent when a cell was written or read, once for each attempt to
// send its block. It is not asked for pages that came for another page
// meanwhile. Its answer is cut to the mapping. All nodes of a run ask the same
// policy, so it may remember questions; such a policy belongs to one run
// (Load).
type Policy func(f Fault) Plan

// PIO brings in the page (P: Page-in 1-Pg; T: Touch-A-Page).
func PIO(f Fault) Plan { return Plan{First: Range{f.Page, f.Page + host.PageBytes}} }

// PI4 brings in the 16 KiB around the page, as large as a block (P: Page-in
// 4-Pgs). At a source it brings in the page and the three behind it; P does not
// cover this case.
func PI4(f Fault) Plan {
	start := f.Page
	if !f.Source {
		start &^= 4*host.PageBytes - 1
	}
	return Plan{First: Range{start, start + 4*host.PageBytes}}
}

// TouchAhead brings in the page and the three behind it, wherever it is (T: Touch-Ahead).
func TouchAhead(f Fault) Plan { return Plan{First: Range{f.Page, f.Page + 4*host.PageBytes}} }

// PIA brings in the page and everything behind it (P: Page-in All-Pgs). The
// driver does not know where the transfer ends, so it goes to the end of the
// mapping.
func PIA(f Fault) Plan { return Plan{First: Range{f.Page, f.Mapping.End}, Search: true} }
