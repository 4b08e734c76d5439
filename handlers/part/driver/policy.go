package driver

import "github.com/spinsim/spinsim/host"

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
}

// Plan is the answer.
type Plan struct {
	// First is brought in before the block is asked for. It has the page; a plan whose First has not brings that page in.
	First Range
	// Then is brought in behind that; a range without addresses is none.
	Then Range
}

// Policy says what to bring in for a page fault. It is asked for each page that was absent when a cell was written, or read, once for each attempt to send its
// block, and not for those that came for another page meanwhile. What it says is cut to the mapping.
type Policy func(f Fault) Plan

// PIO brings in the page (P: Page-in 1-Pg; T: touch-a-page).
func PIO(f Fault) Plan { return Plan{First: Range{f.Page, f.Page + host.PageBytes}} }

// PI4 brings in the 16 KiB that the page is in, those of a block (P: Page-in 4-Pgs); at a source the page and the three behind it (T: touch-ahead).
func PI4(f Fault) Plan {
	start := f.Page
	if !f.Source {
		start &^= 4*host.PageBytes - 1
	}
	return Plan{First: Range{start, start + 4*host.PageBytes}}
}

// PIA brings in the page and all behind it (P: Page-in All-Pgs). Where the transfer ends the driver does not know: the end of the mapping is that.
func PIA(f Fault) Plan { return Plan{First: Range{f.Page, f.Mapping.End}} }
