package host

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Discard takes the pages of n bytes at addr, a multiple of 4 KiB, away, but
// not their addresses (madvise, MADV_DONTNEED): anonymous memory is zeros when
// it is next used, and a private mapping of a file what the file has; shared
// memory is as it was. It returns when no device uses them any more, and costs
// what Unmap costs. Errors: ErrLocked, memory that is locked; ErrNoMapping.
func (p *Process) Discard(t *Thread, addr, n uint64) error {
	if addr%PageBytes != 0 {
		return fmt.Errorf("process %s: madvise of %#x, expected a multiple of %d", p.name, addr, PageBytes)
	}
	start, end, err := p.span("madvise", addr, n)
	if err != nil {
		return err
	}
	p.lock.Lock(t, mmapLock)
	defer p.lock.Unlock(t)
	if err := p.mapped(start, end); err != nil {
		return err
	}
	for i := range p.mappings {
		if m := &p.mappings[i]; m.locked && m.start < end && m.end > start {
			return fmt.Errorf("process %s: madvise of %#x: %w", p.name, max(m.start, start), ErrLocked)
		}
	}
	spec := p.kernel.spec
	run(t, spec.UnmapCall, "madvise")
	run(t, spec.UnmapPage*simTime(p.count(start, end)), "madvise")
	if err := p.calm(t, start, end); err != nil {
		return err
	}
	holes := p.hollow(start, end)
	p.invalidate(start, end, true)
	p.drain(t, 1)
	for _, h := range holes {
		p.set(h.va, pte{})
		g := p.kernel.memory.page(h.frame)
		g.held--
		g.wake()
		p.kernel.unused(h.frame)
	}
	for _, base := range p.bases(start, end) {
		p.prune(p.regions[base>>hugeBits])
	}
	return nil
}

// hole is where a page was that a device may still be using.
type hole struct {
	va    uint64
	frame frame
}

// hollow clears entries. Who wants a page where one was waits: the next would
// have the same bytes, to which a device may still be writing.
func (p *Process) hollow(start, end uint64) (holes []hole) {
	p.hollowed = true
	p.each(start, end, func(va uint64, e pte) {
		p.kernel.stats.Unmapped++
		there := e.flags&(pteMapped|pteZero) == pteMapped
		if there {
			p.kernel.memory.page(e.frame).held++
			holes = append(holes, hole{va, e.frame})
		}
		p.clear(va, e)
		if there {
			p.set(va, pte{e.frame, pteBusy})
		}
	})
	return holes
}

// PageOut writes the pages of n bytes at addr to storage and frees them, as
// reclaim does (madvise, MADV_PAGEOUT), but for those that are pinned, locked,
// under way, or others' too, and those for which there is no room. It costs
// what reclaim costs.
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
			if e := p.pte(va); k.movable(e) {
				g := k.memory.page(e.frame)
				if _, stays := k.look(g); !stays && len(g.maps) == 1 {
					k.delist(e.frame)
					k.isolate(g)
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
