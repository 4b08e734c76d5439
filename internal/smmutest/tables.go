package smmutest

import (
	"fmt"

	"github.com/spinsim/spinsim/smmu"
)

// Geometry of the tables.
const (
	pageBits  = 12
	levelBits = 9
	fanout    = 1 << levelBits
	lastLevel = 3
)

// Tables are the tables of a process: a tree of tables in their own physical
// memory. A counter gives addresses to table pages, so that the address of a
// freed one is never used again: a read of it finds Freed.
type Tables struct {
	top    int
	root   uint64
	next   uint64
	tables map[uint64]*[fanout]smmu.Entry
	reads  int // of freed tables
}

// Freed is the physical address of the page that every descriptor of a freed table leads to.
const Freed = 0xdbdbdbdb000

// firstTable is the physical address of the first table, away from the frames of tests.
const firstTable = 0x100_0000_0000

// NewTables returns empty tables for virtual addresses of 39 or 48 bits.
func NewTables(addressBits int) *Tables {
	t := &Tables{next: firstTable, tables: map[uint64]*[fanout]smmu.Entry{}}
	if addressBits <= pageBits+3*levelBits {
		t.top = 1
	}
	t.root = t.table()
	return t
}

func (t *Tables) table() uint64 {
	addr := t.next
	t.next += 1 << pageBits
	t.tables[addr] = new([fanout]smmu.Entry)
	return addr
}

// Size returns how many bytes a descriptor of a level maps: 4 KiB, 2 MiB, 1 GiB
// for 3, 2, 1.
func Size(level int) uint64 { return 1 << shift(level) }

func shift(level int) uint { return uint(pageBits + levelBits*(lastLevel-level)) }

func index(level int, va uint64) uint64 { return va >> shift(level) % fanout }

// Root implements smmu.Tables.
func (t *Tables) Root() uint64 { return t.root }

// Entry implements smmu.Tables.
func (t *Tables) Entry(table uint64, level int, va uint64) smmu.Entry {
	entries := t.tables[table]
	if entries == nil {
		t.reads++
		return smmu.Entry{Kind: smmu.Page, Write: true, Addr: Freed}
	}
	return entries[index(level, va)]
}

// FreedReads returns how many descriptors of freed tables were read. Each such
// read used a cached path that nobody has invalidated.
func (t *Tables) FreedReads() int { return t.reads }

// Find returns the descriptor that maps va, and its level.
func (t *Tables) Find(va uint64) (e smmu.Entry, level int) {
	table := t.root
	for level = t.top; ; level++ {
		e = t.tables[table][index(level, va)]
		if e.Kind != smmu.Table || level == lastLevel {
			return e, level
		}
		table = e.Addr
	}
}

// place returns the descriptor of a level for va. It makes tables on the way.
// It splits a block on the way into pages or blocks of the next size.
func (t *Tables) place(va uint64, level int) *smmu.Entry {
	table := t.root
	for l := t.top; ; l++ {
		e := &t.tables[table][index(l, va)]
		if l == level {
			return e
		}
		if e.Kind != smmu.Table {
			old := *e
			*e = smmu.Entry{Kind: smmu.Table, Addr: t.table()}
			if old.Kind == smmu.Page {
				for i := range uint64(fanout) {
					t.tables[e.Addr][i] = smmu.Entry{Kind: smmu.Page, Write: old.Write, Addr: old.Addr + i*Size(l+1)}
				}
			}
		}
		table = e.Addr
	}
}

// free frees the table of a descriptor, and the tables below it.
func (t *Tables) free(e smmu.Entry, level int) {
	if e.Kind != smmu.Table || level == lastLevel {
		return
	}
	for _, below := range t.tables[e.Addr] {
		t.free(below, level+1)
	}
	delete(t.tables, e.Addr)
}

// Map maps the page (level 3) or block (2, 1) of va to a physical address. It
// frees a table in its place, for example when pages become a huge page, and
// splits a block around it. Addresses that are not multiples of the size are a
// programmer's mistake and panic.
func (t *Tables) Map(va uint64, level int, frame uint64, write bool) {
	if level < 1 || level > lastLevel || (va|frame)%Size(level) != 0 {
		panic(fmt.Sprintf("smmutest: map %#x to %#x at level %d", va, frame, level))
	}
	e := t.place(va, level)
	t.free(*e, level)
	*e = smmu.Entry{Kind: smmu.Page, Write: write, Addr: frame}
}

// Unmap removes the page or block of va and reports whether there was one. Its
// table stays.
func (t *Tables) Unmap(va uint64) bool {
	e, level := t.Find(va)
	if e.Kind != smmu.Page {
		return false
	}
	*t.place(va, level) = smmu.Entry{}
	return true
}

// Prune removes everything below the descriptor of a level for va, and frees
// the tables there.
func (t *Tables) Prune(va uint64, level int) {
	e := t.place(va, level)
	t.free(*e, level)
	*e = smmu.Entry{}
}

// Protect sets whether the page or block of va may be written. It reports
// whether there is one.
func (t *Tables) Protect(va uint64, write bool) bool {
	e, level := t.Find(va)
	if e.Kind != smmu.Page {
		return false
	}
	t.place(va, level).Write = write
	return true
}
