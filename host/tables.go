package host

import "github.com/spinsim/spinsim/smmu"

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
	// in the tables of devices (OSSpec.DeviceTables); see Process.admit
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

// tablePage is the owner of the table at a physical address.
type tablePage struct {
	p *Process // nil: it was freed
	r *region  // for level 3
}

// newTable returns the address of a new table. Addresses of freed tables are
// not reused, so that a device that still reads them is noticed.
func (k *Kernel) newTable(p *Process, r *region) uint64 {
	k.tables = append(k.tables, tablePage{p, r})
	k.tablePages++
	return firstTable + uint64(len(k.tables)-1)*PageBytes
}

func (k *Kernel) freeTable(addr uint64) {
	k.tables[(addr-firstTable)/PageBytes] = tablePage{}
	k.tablePages--
}

// Root implements smmu.Tables.
func (p *Process) Root() uint64 { return p.root }

// Entry implements smmu.Tables: the present access rights of a device.
func (p *Process) Entry(table uint64, level int, va uint64) smmu.Entry {
	i := (table - firstTable) / PageBytes
	if i >= uint64(len(p.kernel.tables)) || p.kernel.tables[i].p != p {
		return smmu.Entry{Kind: smmu.Page, Write: true, Addr: freedPage}
	}
	switch level {
	case 3:
		return p.leaf(p.kernel.tables[i].r.pte[va>>pageBits%hugePages])
	case 2:
		r := p.region(va)
		switch {
		case r == nil:
			return smmu.Entry{}
		case r.huge:
			return p.leaf(r.pte[0])
		case r.table == 0:
			return smmu.Entry{}
		}
		return smmu.Entry{Kind: smmu.Table, Addr: r.table}
	}
	if d := p.directories[level][va>>dirBits(level)]; d != nil {
		return smmu.Entry{Kind: smmu.Table, Addr: d.table}
	}
	return smmu.Entry{}
}

// dirBits is the logarithm of the bytes that an entry of a table of a level
// covers.
func dirBits(level int) uint { return uint(pageBits + 9*(3-level)) }

func (p *Process) leaf(e pte) smmu.Entry {
	if !e.there() || !p.admitted(e) {
		return smmu.Entry{}
	}
	return smmu.Entry{Kind: smmu.Page, Write: e.flags&pteWrite != 0, Addr: uint64(e.frame) * PageBytes}
}

// admitted reports whether devices can use a present page.
func (p *Process) admitted(e pte) bool { return !p.kernel.spec.ownTables() || e.flags&pteDevice != 0 }

// admit makes a present page available to devices: it adds an entry to devices'
// own tables. A huge page has one entry; if it is split later, its pages keep
// the access.
func (p *Process) admit(va uint64) {
	r := p.region(va)
	e := &r.pte[va>>pageBits%hugePages]
	switch {
	case p.admitted(*e):
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
func (p *Process) expel(old, e pte) pte {
	if old.flags&pteDevice != 0 && e.there() && e.frame == old.frame && old.flags&^e.flags&(pteDevice|pteWrite) == 0 {
		return e
	}
	if old.flags&pteDevice != 0 {
		p.expelled++
	}
	e.flags &^= pteDevice
	return e
}

// region returns the region of an address, nil if it was never used.
func (p *Process) region(va uint64) *region {
	if r := p.latest; r != nil && r.base == va&^(HugeBytes-1) {
		return r
	}
	r := p.regions[va>>hugeBits]
	if r != nil {
		p.latest = r
	}
	return r
}

// regionFor returns the region of an address, with its tables.
func (p *Process) regionFor(va uint64) *region {
	if r := p.region(va); r != nil {
		return r
	}
	r := &region{base: va &^ (HugeBytes - 1)}
	p.regions[va>>hugeBits] = r
	r.table = p.kernel.newTable(p, r)
	for level := 1; level >= p.top(); level-- {
		d := p.directories[level][va>>dirBits(level)]
		if d != nil {
			d.used++
			break
		}
		p.directories[level][va>>dirBits(level)] = &directory{table: p.kernel.newTable(p, nil), used: 1}
	}
	p.latest = r
	return r
}

// top returns the level of the first table.
func (p *Process) top() int {
	if p.kernel.spec.AddressBits == addressBits3 {
		return 1
	}
	return 0
}

// prune frees the tables of a region without entries.
func (p *Process) prune(r *region) {
	if r.used > 0 {
		return
	}
	delete(p.regions, r.base>>hugeBits)
	if p.latest == r {
		p.latest = nil
	}
	if r.table != 0 {
		p.kernel.freeTable(r.table)
	}
	for level := 1; level >= p.top(); level-- {
		d := p.directories[level][r.base>>dirBits(level)]
		if d.used--; d.used > 0 {
			break
		}
		p.kernel.freeTable(d.table)
		delete(p.directories[level], r.base>>dirBits(level))
	}
}

// pte returns the entry of an address, the zero one if there is none.
func (p *Process) pte(va uint64) pte {
	if r := p.region(va); r != nil {
		return r.pte[va>>pageBits%hugePages]
	}
	return pte{}
}

// set changes the entry of an address. It splits a huge page around it.
func (p *Process) set(va uint64, e pte) {
	r := p.regionFor(va)
	if r.huge {
		p.splitHuge(r)
	}
	at := &r.pte[va>>pageBits%hugePages]
	e = p.expel(*at, e)
	if *at == (pte{}) {
		r.used++
	}
	if e == (pte{}) {
		r.used--
	}
	*at = e
}
