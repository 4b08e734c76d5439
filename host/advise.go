package host

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// Discard removes the pages of n bytes at addr, a multiple of 4 KiB, but keeps
// the addresses (madvise, MADV_DONTNEED). On the next use, anonymous memory is
// zeros and a private mapping of a file has the bytes of the file; shared
// memory is unchanged. Discard returns when no device uses the pages any more.
// It costs as much as Unmap. Errors: ErrLocked if memory is locked;
// ErrNoMapping.
func (p *Process) Discard(t *Thread, addr, n uint64) error {
	if addr%PageBytes != 0 {
		return fmt.Errorf("process %s: madvise of %#x, expected a multiple of %d", p.name, addr, PageBytes)
	}
	start, end, err := p.span("madvise", addr, n)
	if err != nil {
		return err
	}
	p.pager.lock.Lock(t, mmapLock)
	defer p.pager.lock.Unlock(t)
	if err := p.pager.mappings.covers(start, end); err != nil {
		return fmt.Errorf("process %s: %w", p.name, err)
	}
	for i := range p.pager.mappings {
		if m := &p.pager.mappings[i]; m.locked && m.start < end && m.end > start {
			return fmt.Errorf("process %s: madvise of %#x: %w", p.name, max(m.start, start), ErrLocked)
		}
	}
	spec := p.kernel.spec
	p.kernel.cpu.Use(used.Unmap)
	run(t, spec.UnmapCall, "madvise")
	run(t, spec.UnmapPage*simTime(p.pager.tables.count(start, end)), "madvise")
	if err := p.pager.calm(t, start, end); err != nil {
		return err
	}
	holes := p.pager.hollow(start, end)
	p.pager.tables.invalidate(start, end, true)
	p.pager.tables.drain(t, 1)
	for _, h := range holes {
		p.pager.tables.set(h.va, pte{})
		g := p.kernel.memory.page(h.frame)
		g.held--
		g.wake()
		p.kernel.unused(h.frame)
	}
	for _, base := range p.pager.tables.bases(start, end) {
		p.pager.tables.prune(p.pager.tables.regions[base>>hugeBits])
	}
	return nil
}

// hole is the place of a removed page that a device may still use.
type hole struct {
	va    uint64
	frame frame
}

// hollow clears entries. Threads that want a page there must wait: the new page
// would have the same bytes, and a device may still write to them.
func (p *pager) hollow(start, end uint64) (holes []hole) {
	p.space.hollowed = true
	p.tables.each(start, end, func(va uint64, e pte) {
		p.kernel.stats.Unmapped++
		there := e.flags&(pteMapped|pteZero) == pteMapped
		if there {
			p.kernel.memory.page(e.frame).held++
			holes = append(holes, hole{va, e.frame})
		}
		p.clear(va, e)
		if there {
			p.tables.set(va, pte{e.frame, pteBusy})
		}
	})
	return holes
}

// PageOut writes the pages of n bytes at addr to storage and frees them, as
// reclaim does and at the same cost (madvise, MADV_PAGEOUT). It skips pages
// that are pinned, locked, in transfer or shared with other processes, and
// pages for which storage has no room.
func (p *Process) PageOut(t *Thread, addr, n uint64) error {
	if _, _, err := p.span("madvise", addr, n); err != nil {
		return err
	}
	k := p.kernel
	for va := pageOf(addr); va < addr+n; {
		var victims []frame
		scanned := 0
		for ; va < addr+n && len(victims) < batch; va += PageBytes {
			scanned++
			if e := p.pager.tables.pte(va); k.movable(e) {
				g := k.memory.page(e.frame)
				if _, stays := k.look(g); !stays && len(g.maps) == 1 {
					k.memory.delist(e.frame)
					g.isolate()
					victims = append(victims, e.frame)
				}
			}
		}
		k.evicting++
		run(t, k.spec.ReclaimScan*sim.Time(scanned), "madvise")
		k.evict(t, victims)
		k.evicting--
		k.hurry()
	}
	return nil
}
