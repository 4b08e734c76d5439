package host

import (
	"sort"

	"github.com/spinsim/spinsim/smmu"
)

// Flat is the page tables of a process without a paging operating system. All
// of its memory is present and writable, and physical addresses equal virtual
// ones. The tables take no memory of the simulator.
type Flat struct{ Space *AddressSpace }

const (
	flatTables = 1 << 40 // physical address of the root: above all memory
	lastLevel  = 3
)

// Root implements smmu.Tables.
func (Flat) Root() uint64 { return flatTables }

// Entry implements smmu.Tables.
func (f Flat) Entry(_ uint64, level int, va uint64) smmu.Entry {
	shift := dirBits(level)
	from := va >> shift << shift
	switch {
	case !f.Space.overlaps(from, 1<<shift):
		return smmu.Entry{}
	case level == lastLevel:
		return smmu.Entry{Kind: smmu.Page, Write: true, Addr: from}
	}
	// Each level has one table per range of addresses, one after the other.
	return smmu.Entry{Kind: smmu.Table, Addr: flatTables<<(level+1) + from>>shift<<pageBits}
}

// overlaps reports whether memory of the process lies in the n bytes at addr.
func (a *AddressSpace) overlaps(addr, n uint64) bool {
	i := sort.Search(len(a.ranges), func(i int) bool { return a.ranges[i].start >= addr+n }) - 1
	return i >= 0 && a.ranges[i].start+a.ranges[i].size() > addr
}
