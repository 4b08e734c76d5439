package host

import (
	"slices"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// batch is how many pages are evicted together (SWAP_CLUSTER_MAX).
const batch = 32

// maxFailures is how often in a row a thread scans all pages without success
// before its allocation fails. After that many failures kswapd sleeps until
// memory is freed (MAX_RECLAIM_RETRIES). A tasklet scans only once: it cannot
// wait until pages are unpinned.
const maxFailures = 16

// alloc returns a frame for a process. The frame is in hand until it is mapped.
// alloc wakes kswapd when memory is low, and frees memory itself when it is
// nearly exhausted.
func (k *Kernel) alloc(t *Thread, p *pager) (frame, error) {
	k.cpu.Use(used.Page)
	for tries := maxFailures; k.memory.free <= int(k.spec.WatermarkMin/PageBytes); {
		k.stats.Shortages++
		if k.reclaim(t) {
			continue
		}
		if tries--; tries == 0 || t == nil || t.level == Softirq {
			return 0, k.outOfMemory(p)
		}
	}
	f := k.memory.take()
	k.memory.page(f).inHand = true
	k.wakeKswapd()
	return f, nil
}

func (k *Kernel) wakeKswapd() {
	if k.memory.free > int(k.spec.WatermarkLow/PageBytes) || k.failures >= maxFailures {
		return
	}
	k.cpu.Use(used.KernelThread)
	if k.kswapd == nil {
		k.kswapd = k.cpu.Kthread(k.spec.KernelCore, "kswapd", k.balance)
	} else if k.asleep {
		k.asleep = false
		k.kswapd.Wake()
	}
}

// balance is kswapd: it frees memory up to the high watermark.
func (k *Kernel) balance(t *Thread) {
	for {
		for k.memory.free < int(k.spec.WatermarkHigh/PageBytes) {
			if k.shrink(t) == 0 {
				k.failures++
				break
			}
		}
		for k.asleep = true; k.asleep; {
			t.Wait("memory to be low")
		}
	}
}

// reclaim makes a thread free memory, or wait for other threads that do. It
// reports whether some may be free now.
func (k *Kernel) reclaim(t *Thread) bool {
	if t == nil {
		return k.early()
	}
	if k.shrink(t) > 0 {
		return true
	}
	if k.evicting == 0 {
		return k.memory.free > int(k.spec.WatermarkMin/PageBytes)
	}
	k.short = append(k.short, t)
	t.Wait("memory")
	return true
}

// early frees memory for the setup of a program. It takes pages from programs
// that have not begun; these pages are on storage when they begin. It reports
// whether some memory is free now.
func (k *Kernel) early() bool {
	before := k.stats
	n := k.shrink(nil)
	k.stats = before
	k.stats.Early += int64(n)
	return n > 0
}

// shrink evicts some pages that were not used recently, and returns how many it
// freed.
func (k *Kernel) shrink(t *Thread) int {
	spec := k.spec
	for left := 2*(k.memory.active.n+k.memory.inactive.n) + batch; left > 0; {
		k.refill()
		var victims []frame
		scanned := 0
		for ; left > 0 && len(victims) < batch && scanned < batch && k.memory.inactive.n > 0; left-- {
			scanned++
			f := k.memory.inactive.tail
			g := k.memory.page(f)
			k.memory.delist(f)
			switch used, stays := k.look(g); {
			case stays, t == nil && (g.file != nil || len(g.maps) > 1):
				k.memory.enlist(f, onActive)
			case used:
				k.memory.enlist(f, onActive)
			default:
				victims = append(victims, f)
				g.isolate()
			}
		}
		k.stats.Scanned += int64(scanned)
		if scanned == 0 {
			return 0
		}
		if len(victims) == 0 {
			run(t, spec.ReclaimScan*sim.Time(scanned), "reclaim")
			continue
		}
		k.evicting++ // from now on waiting is worthwhile
		run(t, spec.ReclaimScan*sim.Time(scanned), "reclaim")
		freed := k.evict(t, victims)
		k.evicting--
		k.hurry()
		if freed > 0 {
			return freed
		}
	}
	return 0
}

// hurry wakes the threads that wait for memory.
func (k *Kernel) hurry() {
	for _, w := range k.short {
		w.Wake()
	}
	k.short = k.short[:0]
}

// refill moves pages from the active list to the inactive one until that is as
// long. Pages used since the last scan stay active for another round.
func (k *Kernel) refill() {
	for n := k.memory.active.n; n > 0 && k.memory.inactive.n < k.memory.active.n; n-- {
		f := k.memory.active.tail
		k.memory.delist(f)
		if used, _ := k.look(k.memory.page(f)); used {
			k.memory.enlist(f, onActive)
		} else {
			k.memory.enlist(f, onInactive)
		}
	}
}

// look reports whether a page was used since the last scan, and whether it must
// stay.
func (k *Kernel) look(g *page) (used, stays bool) {
	// the last case is about to be freed
	stays = k.homeless(g) || g.pins > 0 || g.held > 0 || g.locked || len(g.maps) == 0 && g.file == nil
	used, g.read = g.read, false
	for _, at := range g.maps {
		e := &at.p.tables.region(at.va).pte[at.va>>pageBits%hugePages]
		used = used || e.flags&pteYoung != 0
		e.flags &^= pteYoung
		if m := at.p.mappings.find(at.va); m != nil && m.locked || e.flags&pteBusy != 0 {
			stays = true
		}
	}
	return used, stays
}

// homeless reports whether storage has no place for a page.
func (k *Kernel) homeless(g *page) bool {
	if g.file != nil && !g.file.anonymous || g.slot != 0 && !g.dirty {
		return false
	}
	return k.swap.used >= k.swap.total
}

// isolate unmaps a page from all its users; they wait if they want it again.
func (g *page) isolate() {
	g.locked = true
	for _, at := range g.maps {
		e := at.p.tables.pte(at.va)
		e.flags |= pteBusy
		at.p.tables.set(at.va, e)
		at.p.tables.invalidate(at.va, at.va+PageBytes, false)
	}
}

// evict writes isolated pages to storage and frees them; pages without room on
// storage stay. It returns the number of freed pages.
func (k *Kernel) evict(t *Thread, victims []frame) (freed int) {
	k.memory.settle(t, victims)
	run(t, k.spec.ReclaimPage*sim.Time(len(victims)), "reclaim")
	var writes []*command
	for i, f := range victims {
		g := k.memory.page(f)
		if !g.dirty && (g.slot != 0 || g.file != nil && !g.file.anonymous) {
			continue
		}
		if !k.destination(g) {
			k.restore(f)
			victims[i] = 0
			continue
		}
		if t == nil {
			continue
		}
		c := &command{t: t, write: true, bytes: PageBytes}
		k.storage.submit(c)
		writes = append(writes, c)
	}
	if k.storage != nil {
		k.storage.wait(t, writes)
	}
	for _, f := range victims {
		if f != 0 {
			k.farewell(f, t == nil)
			freed++
		}
	}
	return freed
}

// settle waits until no device uses the isolated pages.
func (m *physical) settle(t *Thread, frames []frame) {
	var all []*pager
	ranges := map[*pager]int{}
	for _, f := range frames {
		for _, at := range m.page(f).maps {
			if ranges[at.p]++; ranges[at.p] == 1 {
				all = append(all, at.p)
			}
		}
	}
	for _, p := range all {
		p.tables.drain(t, ranges[p])
	}
}

// destination finds a place on storage for a page; false: there is none.
func (k *Kernel) destination(g *page) bool {
	switch {
	case k.storage == nil:
		return false
	case g.file != nil && !g.file.anonymous:
		return true
	}
	s, ok := k.swap.take()
	if !ok {
		k.stats.SwapFull++
		return false
	}
	if g.slot != 0 {
		k.swap.drop(g.slot)
	}
	g.slot = s
	return true
}

// restore gives an isolated page back to its users.
func (k *Kernel) restore(f frame) {
	g := k.memory.page(f)
	g.locked = false
	for _, at := range g.maps {
		e := at.p.tables.pte(at.va)
		e.flags &^= pteBusy
		at.p.tables.set(at.va, e)
	}
	k.memory.enlist(f, onActive)
	g.wake()
}

// farewell frees a page whose content is on storage. early: its users may still
// write the bytes.
func (k *Kernel) farewell(f frame, early bool) {
	g := k.memory.page(f)
	k.stats.Reclaimed++
	if g.file != nil {
		k.farewellFile(g)
	} else {
		home := g.maps[g.home]
		switch {
		case early:
			k.swap.slots[g.slot].early = home.p.space.page(home.va)
		case g.dirty:
			k.stats.SwappedOut++
			k.swap.store(g.slot, home.p.space.page(home.va))
		}
		for _, at := range slices.Clone(g.maps) {
			e := at.p.tables.pte(at.va)
			k.swap.use(g.slot)
			if e.flags&pteLent != 0 {
				at.p.space.lent--
			}
			at.p.resident--
			at.p.tables.set(at.va, pte{g.slot, pteSwap | e.flags&pteNone})
			if !early {
				poison.Bytes(at.p.space.page(at.va))
			}
		}
	}
	clear(g.maps)
	g.maps, g.home = g.maps[:0], 0
	g.locked = false
	g.wake()
	k.unused(f)
}
