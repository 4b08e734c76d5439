package host

import "fmt"

// Audit compares the kernel's books with each other. Every frame must be free,
// or be known to all entries that map it and to no others. Every counter must
// equal the number of things it counts. Audit returns the first contradiction,
// for tests.
func (k *Kernel) Audit() error {
	used, free := map[frame]int{}, 0
	for b := range k.memory.blocks {
		blk := &k.memory.blocks[b]
		n := 0
		for i := range blk.pages {
			if f := frame(b*hugePages + i); blk.pages[i].used {
				used[f] = 0
			} else {
				n++
			}
		}
		if n != int(blk.free) {
			return fmt.Errorf("block %d has %d free pages, counted %d", b, n, blk.free)
		}
		free += n
	}
	free += k.memory.total - len(k.memory.blocks)*hugePages
	if free != k.memory.free {
		return fmt.Errorf("%d free pages, counted %d", free, k.memory.free)
	}
	for _, p := range k.processes {
		if err := p.pager.audit(used); err != nil {
			return fmt.Errorf("process %s: %w", p.name, err)
		}
	}
	for b := range k.memory.blocks {
		for i := range k.memory.blocks[b].pages {
			f, g := frame(b*hugePages+i), &k.memory.blocks[b].pages[i]
			switch {
			case !g.used || f == zeroFrame:
			case used[f] != len(g.maps):
				return fmt.Errorf("frame %d is mapped %d times, known %d", f, used[f], len(g.maps))
			case len(g.maps) == 0 && g.pins == 0 && g.held == 0 && !g.elsewhere():
				return fmt.Errorf("frame %d is nobody's", f)
			}
		}
	}
	return k.auditSwap()
}

// auditSwap compares the reference counts of slots.
func (k *Kernel) auditSwap() error {
	refs := map[frame]int32{}
	for _, p := range k.processes {
		p.pager.tables.each(0, p.space.next, func(_ uint64, e pte) {
			if e.flags&pteSwap != 0 {
				refs[e.frame]++
			}
		})
	}
	for _, f := range k.files {
		for i := range uint32(len(f.cache) / PageBytes) {
			if s := f.slots[i]; s != 0 {
				refs[s]++
			}
		}
	}
	for b := range k.memory.blocks {
		for i := range k.memory.blocks[b].pages {
			if g := &k.memory.blocks[b].pages[i]; g.used && g.slot != 0 {
				refs[g.slot]++
			}
		}
	}
	used := 0
	for i := range k.swap.slots {
		at := &k.swap.slots[i]
		if at.refs != refs[frame(i)] {
			return fmt.Errorf("slot %d has %d references, known %d", i, refs[frame(i)], at.refs)
		}
		if at.refs > 0 {
			used++
		}
	}
	if used != k.swap.used {
		return fmt.Errorf("%d slots in use, counted %d", used, k.swap.used)
	}
	return nil
}

// elsewhere reports whether a page is kept for a reason other than a mapping.
func (g *page) elsewhere() bool { return g.file != nil || g.locked || g.inHand }

// audit counts the entries that map each frame.
func (p *pager) audit(used map[frame]int) error {
	if err := p.auditMappings(); err != nil {
		return err
	}
	resident, lent := 0, 0
	for _, base := range p.tables.bases(0, p.space.next) {
		r, n := p.tables.regions[base>>hugeBits], 0
		for i, e := range r.pte {
			va := base + uint64(i)*PageBytes
			if e != (pte{}) {
				n++
				if p.mappings.find(va) == nil {
					return fmt.Errorf("%#x has a page, and no mapping", va)
				}
			}
			if e.flags&pteLent != 0 {
				lent++
			}
			if e.flags&pteDevice != 0 && (!e.there() || !p.kernel.spec.ownTables()) {
				return fmt.Errorf("%#x is a device's, with entry %+v", va, e)
			}
			if r.huge && e.flags&pteDevice != r.pte[0].flags&pteDevice {
				return fmt.Errorf("devices have a part of the huge page of %#x", va)
			}
			if e.flags&pteMapped == 0 || e.flags&pteZero != 0 {
				continue
			}
			resident++
			if _, is := used[e.frame]; !is {
				return fmt.Errorf("%#x has frame %d, which is free", va, e.frame)
			}
			used[e.frame]++
			g := p.kernel.memory.page(e.frame)
			if i := g.find(p, va); int(g.home) == i && e.flags&pteLent != 0 {
				return fmt.Errorf("%#x is at home and lent", va)
			}
			if e.flags&pteWrite != 0 && (len(g.maps) > 1 && !g.shared() || !g.dirty) {
				return fmt.Errorf("%#x may be written, with frame %d: %+v", va, e.frame, *g)
			}
		}
		if n != int(r.used) {
			return fmt.Errorf("region %#x has %d entries, counted %d", base, n, r.used)
		}
	}
	if resident != p.resident || lent != p.space.lent {
		return fmt.Errorf("%d pages in memory and %d lent, counted %d and %d", resident, lent, p.resident, p.space.lent)
	}
	return nil
}

// auditMappings checks that mappings are sorted and have bytes.
func (p *pager) auditMappings() error {
	last := uint64(0)
	for _, m := range p.mappings {
		if m.start < last || m.end <= m.start {
			return fmt.Errorf("mapping from %#x to %#x behind %#x", m.start, m.end, last)
		}
		if _, ok := p.space.bytes(m.start, 1); !ok {
			return fmt.Errorf("the mapping at %#x has no bytes", m.start)
		}
		last = m.end
	}
	return nil
}

// shared reports whether several processes may write the page.
func (g *page) shared() bool { return g.file != nil }
