package smmu

import "github.com/spinsim/spinsim/sim"

// walk is a walk of tables for a page.
type walk struct {
	va      uint64 // of the page
	table   uint64 // the descriptor being read is in it
	from    sim.Time
	list        // slots that wait for it; empty: there is no such walk
	level   int // of the table
	reads   int
	gen     uint32 // of the bank
	index   uint8
	bank    uint8
	cached  bool // the walk cache had the table
	restart bool // the way here has been invalidated
}

// walker walks the tables. It has the second TLB, the walk cache, and a number
// of walks at a time.
type walker struct {
	pages      assoc // the second TLB
	tables     assoc // the walk cache
	walks      []walk
	running    int    // walks
	waiting    list   // slots that wait for a walk
	top        int    // the level of the first table
	ahead      int    // pages to prefetch
	prefetched uint64 // pages
}

func (x *walker) init(spec *Spec) {
	x.walks = make([]walk, spec.Walks)
	for i := range x.walks {
		x.walks[i].list, x.walks[i].index = none, uint8(i)
	}
	x.waiting, x.top, x.ahead = none, spec.top(), spec.Prefetch
	x.pages.init(spec.L2Entries, spec.L2Ways)
	x.tables.init(spec.WalkCache, spec.WalkCacheWays)
}

// look looks va up in the second TLB.
func (x *walker) look(bank int, va uint64) (l leaf, level int, hit bool) {
	for level = lastLevel; level > 0; level-- {
		if data, hit := x.pages.look(bank, va, level); hit {
			return leaf(data), level, true
		}
	}
	return 0, 0, false
}

// find returns the walk that is under way to the page of a slot, or else one
// that is free, or -1.
func (x *walker) find(t *slot) int {
	free := -1
	for k, left := 0, x.running; k < len(x.walks) && (left > 0 || free < 0); k++ {
		w := &x.walks[k]
		switch {
		case w.first < 0:
			if free < 0 {
				free = k
			}
			continue
		case w.va == t.va&^pageMask && w.bank == t.bank && w.gen == t.gen:
			return k
		}
		left--
	}
	return free
}

// begin makes a free walk one for a slot.
func (x *walker) begin(w *walk, t *slot, now sim.Time) {
	x.running++
	*w = walk{index: w.index, va: t.va &^ pageMask, from: now, list: none, gen: t.gen, bank: t.bank}
}

// descend finds the first table that a walk reads.
func (x *walker) descend(w *walk, root uint64) {
	w.level, w.table, w.cached, w.restart = x.top, root, false, false
	if table, hit := x.tables.look(int(w.bank), w.va, lastLevel-1); hit {
		w.level, w.table, w.cached = lastLevel, table, true
	}
}

// step handles a descriptor that a walk has read. With OK the walk goes on in
// the next table, or is at its end and has the page l.
func (x *walker) step(w *walk, b *Bank) (l leaf, end bool, res Result) {
	e := b.tables.Entry(w.table, w.level, w.va)
	bank := int(w.bank)
	switch {
	case e.Kind == Table && w.level < lastLevel:
		if w.level == lastLevel-1 {
			x.tables.insert(tagOf(bank, w.va, w.level), e.Addr)
		}
		w.table = e.Addr
		w.level++
		return 0, false, OK
	case e.Kind == Page && w.level > 0:
		if w.level == lastLevel {
			x.prefetch(w, b)
		}
		l = leafOf(e)
		x.pages.insert(tagOf(bank, w.va, w.level), uint64(l))
		return l, true, OK
	}
	return 0, true, Fault
}

// prefetch puts the pages behind a walk's page into the second TLB, if their
// descriptors came with its own. The farthest goes first, so that the nearest
// stays longest.
func (x *walker) prefetch(w *walk, b *Bank) {
	place := int(w.va >> pageBits % (lineBytes / descriptor))
	for n := min(x.ahead, lineBytes/descriptor-1-place); n > 0; n-- {
		va := w.va + uint64(n)<<pageBits
		if e := b.tables.Entry(w.table, lastLevel, va); e.Kind == Page {
			x.prefetched++
			x.pages.insert(tagOf(int(w.bank), va, lastLevel), uint64(leafOf(e)))
		}
	}
}

// end ends a walk, and returns the slots that have waited for it.
func (x *walker) end(w *walk) list {
	slots := w.list
	w.list = none
	x.running--
	return slots
}

// invalidate forgets the page or block of an address. With leafOnly false it
// also forgets the way to the descriptor.
func (x *walker) invalidate(bank int, va uint64, leafOnly bool) {
	for level := lastLevel; level > 0; level-- {
		x.pages.invalidate(bank, va, level)
	}
	if leafOnly {
		return
	}
	x.tables.invalidate(bank, va, lastLevel-1)
	for w := range x.onTheWay {
		if int(w.bank) == bank && (w.va^va)>>shift(w.level-1) == 0 {
			w.restart = true
		}
	}
}

func (x *walker) invalidateBank(bank int) {
	x.pages.invalidateBank(bank)
	x.tables.invalidateBank(bank)
	for w := range x.onTheWay {
		w.restart = w.restart || int(w.bank) == bank
	}
}

func (x *walker) clear() {
	x.pages.clear()
	x.tables.clear()
	for w := range x.onTheWay {
		w.restart = true
	}
}

// onTheWay yields the walks that have left the first table.
func (x *walker) onTheWay(yield func(*walk) bool) {
	for i := range x.walks {
		if w := &x.walks[i]; w.first >= 0 && w.level > x.top && !yield(w) {
			return
		}
	}
}
