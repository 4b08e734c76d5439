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

// Fault is what a policy is asked about.
type Fault struct {
	Page    uint64 // address of the page that was absent
	Source  bool   // at the source of a transfer, else at its destination
	Mapping Range  // of the process, that the page is in; how far the transfer goes nobody says
	// Node and Process are whose page it is.
	Node    int
	Process *host.Process
	// Block is the attempt whose cell met the page; the zero Block if only the registers of the SMMU
	// are known: of a fault at a source, or one for which the FIFO had no room.
	Block Block
	// At is when the policy is asked.
	At sim.Time
}

// Block names an attempt to send a block. Two are equal if they are the same attempt, as long as
// sequence numbers of 14 bits do not come again.
type Block struct {
	Known       bool   // false: all else is zero
	Node        uint32 // that sends it
	PID         uint32 // its process there
	Transaction uint32 // 14 bits
	Sequence    uint32 // 14 bits, another with each attempt
}

// Plan is the answer.
type Plan struct {
	// First is brought in before the block is asked for. It has the page; a
	// plan whose First has not brings that page in.
	First Range
	// Then is brought in behind that; a range without addresses is none.
	Then Range
}

// Policy says what to bring in for a page fault. It is asked for each page that
// was absent when a cell was written, or read, once for each attempt to send
// its block, and not for those that came for another page meanwhile. What it
// says is cut to the mapping. All nodes of a run ask the same one, so that it
// may remember what it was asked; one that does belongs to one run (Load).
type Policy func(f Fault) Plan

// PIO brings in the page (P: Page-in 1-Pg; T: Touch-A-Page).
func PIO(f Fault) Plan { return Plan{First: Range{f.Page, f.Page + host.PageBytes}} }

// PI4 brings in the 16 KiB that the page is in, those of a block (P: Page-in
// 4-Pgs); at a source the page and the three behind it, of which P does not
// speak.
func PI4(f Fault) Plan {
	start := f.Page
	if !f.Source {
		start &^= 4*host.PageBytes - 1
	}
	return Plan{First: Range{start, start + 4*host.PageBytes}}
}

// TouchAhead brings in the page and the three behind it, wherever it is (T: Touch-Ahead).
func TouchAhead(f Fault) Plan { return Plan{First: Range{f.Page, f.Page + 4*host.PageBytes}} }

// PIA brings in the page and all behind it (P: Page-in All-Pgs). Where the
// transfer ends the driver does not know: the end of the mapping is that.
func PIA(f Fault) Plan { return Plan{First: Range{f.Page, f.Mapping.End}} }
