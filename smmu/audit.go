package smmu

import "github.com/spinsim/spinsim/sim"

// audit compares what the TLBs and the walk cache have with the tables, with
// Spec.Stale Poison.
type audit struct {
	on     bool
	engine *sim.Engine
	watch  Watcher
	top    int    // the level of the first table
	stale  uint64 // translations found
}

// truth returns the descriptor of va in the tables, down to a level, and its
// level.
func (a *audit) truth(b *Bank, va uint64, last int) (e Entry, level int) {
	table := b.tables.Root()
	for level = a.top; ; level++ {
		e = b.tables.Entry(table, level, va)
		if e.Kind != Table || level == last {
			return e, level
		}
		table = e.Addr
	}
}

// page reports whether an access ends differently with a translation from a
// TLB than with one from the tables.
func (a *audit) page(r *Request, b *Bank, va uint64, l leaf, at int) (stale bool) {
	e, level := a.truth(b, va, lastLevel)
	is := leafOf(e)
	page := e.Kind == Page && level > 0
	switch {
	case page && !l.allows(r.Write) && !is.allows(r.Write): // denied by both
		return false
	case page && l.allows(r.Write) && is.allows(r.Write) && l.frame(at, va) == is.frame(level, va):
		return false
	}
	a.found(r, b, va, at, Entry{Page, l&writable != 0, uint64(l &^ pageMask)}, e)
	return true
}

// table reports whether the walk cache has sent a walk, for a request, to a
// table that is not in the tables.
func (a *audit) table(r *Request, b *Bank, w *walk) (stale bool) {
	e, level := a.truth(b, w.va, lastLevel-1)
	if e.Kind == Table && level == lastLevel-1 && e.Addr == w.table {
		return false
	}
	a.found(r, b, w.va, lastLevel-1, Entry{Table, false, w.table}, e)
	return true
}

func (a *audit) found(r *Request, b *Bank, va uint64, level int, had, is Entry) {
	a.stale++
	if a.watch != nil {
		a.watch.Stale(StaleInfo{
			Bank: int(b.index), PDID: r.PDID, Flow: r.Flow, Addr: va, Write: r.Write, Had: had, Is: is, Level: level, At: a.engine.Now(),
		})
	}
}
