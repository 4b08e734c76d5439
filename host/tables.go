package host

import (
	"slices"

	"github.com/spinsim/spinsim/smmu"
)

// pte is the entry of a page in the tables of a process, with data that Linux
// keeps elsewhere. The zero value means never touched.
type pte struct {
	frame frame // if mapped, the page; if swapped, the slot
	flags pteFlags
}

type pteFlags uint16

const (
	pteMapped pteFlags = 1 << iota // frame is the page
	pteWrite                       // writable: the process's own and dirty
	pteYoung                       // used since reclaim last looked
	pteZero                        // maps the page of zeros
	pteLent                        // its bytes are in another process's backing
	pteNone                        // its mapping allows no access
	pteBusy                        // in transfer or moving: threads that want it wait
	pteSwap                        // its content is in a slot
	// in the tables of devices (OSSpec.DeviceTables); see Tables.admit
	pteDevice
)

// there reports whether programs and devices can read the page.
func (e pte) there() bool { return e.flags&(pteMapped|pteNone|pteBusy) == pteMapped }

// allows reports whether the page can be used without a fault.
func (e pte) allows(write bool) bool {
	return e.there() && (!write || e.flags&pteWrite != 0)
}

// region is 2 MiB of a process's used addresses, with its table of level 3.
type region struct {
	base   uint64
	table  uint64 // physical address; 0: none, because its pages are a huge page
	used   int32  // nonzero entries
	queued bool   // khugepaged will look at it
	huge   bool   // the tables have one entry for all of it: its frames are one block
	pte    [hugePages]pte
}

// directory is a table of a higher level.
type directory struct {
	table uint64
	used  int // tables below
}

// firstTable is the physical address of the first page of tables, which are not
// among the frames. freedPage is the target of every entry of a freed table.
const (
	firstTable = 1 << 45
	freedPage  = 1<<46 - PageBytes
)

// tablePages is the memory of the kernel for tables.
type tablePages struct {
	pages []tablePage
	used  int
}

// tablePage is the owner of the table at a physical address.
type tablePage struct {
	owner *Tables // nil: it was freed
	r     *region // for level 3
}

// take returns the address of a new table. Addresses of freed tables are not
// reused, so that a device that still reads them is noticed.
func (m *tablePages) take(owner *Tables, r *region) uint64 {
	m.pages = append(m.pages, tablePage{owner, r})
	m.used++
	return firstTable + uint64(len(m.pages)-1)*PageBytes
}

func (m *tablePages) free(addr uint64) {
	m.pages[(addr-firstTable)/PageBytes] = tablePage{}
	m.used--
}

// Tables are the page tables of a process. Devices walk them (smmu.Tables).
// Notifiers receive their changes.
type Tables struct {
	spec        *OSSpec
	memory      *tablePages
	stats       *KernelStats
	root        uint64 // physical address of the first table
	directories [2]map[uint64]*directory
	regions     map[uint64]*region
	latest      *region // region of the latest access
	notifiers   []Notifier
	splits      int // splits of huge pages that are not paid for
	// pages that devices with their own tables have lost and that are not paid for
	expelled int
}

func (pt *Tables) init(k *Kernel) {
	pt.spec, pt.memory, pt.stats = k.spec, &k.tables, &k.stats
	pt.regions = map[uint64]*region{}
	for i := range pt.directories {
		pt.directories[i] = map[uint64]*directory{}
	}
	pt.root = pt.memory.take(pt, nil)
}

// Root implements smmu.Tables.
func (pt *Tables) Root() uint64 { return pt.root }

// Entry implements smmu.Tables: the present access rights of a device.
func (pt *Tables) Entry(table uint64, level int, va uint64) smmu.Entry {
	i := (table - firstTable) / PageBytes
	if i >= uint64(len(pt.memory.pages)) || pt.memory.pages[i].owner != pt {
		return smmu.Entry{Kind: smmu.Page, Write: true, Addr: freedPage}
	}
	switch level {
	case 3:
		return pt.leaf(pt.memory.pages[i].r.pte[va>>pageBits%hugePages])
	case 2:
		r := pt.region(va)
		switch {
		case r == nil:
			return smmu.Entry{}
		case r.huge:
			return pt.leaf(r.pte[0])
		case r.table == 0:
			return smmu.Entry{}
		}
		return smmu.Entry{Kind: smmu.Table, Addr: r.table}
	}
	if d := pt.directories[level][va>>dirBits(level)]; d != nil {
		return smmu.Entry{Kind: smmu.Table, Addr: d.table}
	}
	return smmu.Entry{}
}

// dirBits is the logarithm of the bytes that an entry of a table of a level
// covers.
func dirBits(level int) uint { return uint(pageBits + 9*(3-level)) }

func (pt *Tables) leaf(e pte) smmu.Entry {
	if !e.there() || !pt.admitted(e) {
		return smmu.Entry{}
	}
	return smmu.Entry{Kind: smmu.Page, Write: e.flags&pteWrite != 0, Addr: uint64(e.frame) * PageBytes}
}

// admitted reports whether devices can use a present page.
func (pt *Tables) admitted(e pte) bool { return !pt.spec.ownTables() || e.flags&pteDevice != 0 }

// admit makes a present page available to devices: it adds an entry to devices'
// own tables. A huge page has one entry; if it is split later, its pages keep
// the access.
func (pt *Tables) admit(va uint64) {
	r := pt.region(va)
	e := &r.pte[va>>pageBits%hugePages]
	switch {
	case pt.admitted(*e):
	case r.huge:
		for i := range r.pte {
			r.pte[i].flags |= pteDevice
		}
	default:
		e.flags |= pteDevice
	}
}

// expel returns a new entry that replaces an old one. Devices keep a page that
// stays in place and loses no rights. They lose other pages; drain pays for
// that.
func (pt *Tables) expel(old, e pte) pte {
	if old.flags&pteDevice != 0 && e.there() && e.frame == old.frame && old.flags&^e.flags&(pteDevice|pteWrite) == 0 {
		return e
	}
	if old.flags&pteDevice != 0 {
		pt.expelled++
	}
	e.flags &^= pteDevice
	return e
}

// region returns the region of an address, nil if it was never used.
func (pt *Tables) region(va uint64) *region {
	if r := pt.latest; r != nil && r.base == va&^(HugeBytes-1) {
		return r
	}
	r := pt.regions[va>>hugeBits]
	if r != nil {
		pt.latest = r
	}
	return r
}

// regionFor returns the region of an address, with its tables.
func (pt *Tables) regionFor(va uint64) *region {
	if r := pt.region(va); r != nil {
		return r
	}
	r := &region{base: va &^ (HugeBytes - 1)}
	pt.regions[va>>hugeBits] = r
	r.table = pt.memory.take(pt, r)
	for level := 1; level >= pt.top(); level-- {
		d := pt.directories[level][va>>dirBits(level)]
		if d != nil {
			d.used++
			break
		}
		pt.directories[level][va>>dirBits(level)] = &directory{table: pt.memory.take(pt, nil), used: 1}
	}
	pt.latest = r
	return r
}

// top returns the level of the first table.
func (pt *Tables) top() int {
	if pt.spec.AddressBits == addressBits3 {
		return 1
	}
	return 0
}

// prune frees the tables of a region without entries.
func (pt *Tables) prune(r *region) {
	if r.used > 0 {
		return
	}
	delete(pt.regions, r.base>>hugeBits)
	if pt.latest == r {
		pt.latest = nil
	}
	if r.table != 0 {
		pt.memory.free(r.table)
	}
	for level := 1; level >= pt.top(); level-- {
		d := pt.directories[level][r.base>>dirBits(level)]
		if d.used--; d.used > 0 {
			break
		}
		pt.memory.free(d.table)
		delete(pt.directories[level], r.base>>dirBits(level))
	}
}

// pte returns the entry of an address, the zero one if there is none.
func (pt *Tables) pte(va uint64) pte {
	if r := pt.region(va); r != nil {
		return r.pte[va>>pageBits%hugePages]
	}
	return pte{}
}

// set changes the entry of an address. It splits a huge page around it.
func (pt *Tables) set(va uint64, e pte) {
	r := pt.regionFor(va)
	if r.huge {
		pt.splitHuge(r)
	}
	at := &r.pte[va>>pageBits%hugePages]
	e = pt.expel(*at, e)
	if *at == (pte{}) {
		r.used++
	}
	if e == (pte{}) {
		r.used--
	}
	*at = e
}

// each calls f for each nonzero entry from start to end, in order; f may change
// the entry.
func (pt *Tables) each(start, end uint64, f func(va uint64, e pte)) {
	for _, base := range pt.bases(start, end) {
		r := pt.regions[base>>hugeBits]
		if r == nil {
			continue
		}
		for va := max(start, base); va < min(end, base+HugeBytes); va += PageBytes {
			if e := r.pte[va>>pageBits%hugePages]; e != (pte{}) {
				f(va, e)
			}
		}
	}
}

// bases returns the used regions between two addresses, in order.
func (pt *Tables) bases(start, end uint64) (all []uint64) {
	if (end-start)>>hugeBits < uint64(len(pt.regions)) {
		for base := start &^ (HugeBytes - 1); base < end; base += HugeBytes {
			if pt.regions[base>>hugeBits] != nil {
				all = append(all, base)
			}
		}
		return all
	}
	for _, r := range pt.regions { //lint:maporder sorted below
		if r.base+HugeBytes > start && r.base < end {
			all = append(all, r.base)
		}
	}
	slices.Sort(all)
	return all
}

// count returns the number of present pages.
func (pt *Tables) count(start, end uint64) (n int) {
	pt.each(start, end, func(uint64, pte) { n++ })
	return n
}

// splitHuge gives the pages of a huge page their own entries. It must run
// before one of them changes.
func (pt *Tables) splitHuge(r *region) {
	r.huge = false
	r.table = pt.memory.take(pt, r)
	pt.stats.Splits++
	pt.splits++
	pt.invalidate(r.base, r.base+HugeBytes, true)
}

// empty reports whether a region has no pages.
func (pt *Tables) empty(base uint64) bool {
	r := pt.region(base)
	return r == nil || r.used == 0
}
