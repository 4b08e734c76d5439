package host

import (
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// Values of OSSpec.HugePages.
const (
	HugeNever  = "never"
	HugeAlways = "always"
)

// job is a region for khugepaged to check.
type job struct {
	p    *pager
	base uint64
}

// hugeMapping reports whether a region can be a huge page: it lies within one
// writable mapping of private anonymous memory.
func (p *pager) hugeMapping(base uint64) bool {
	if p.kernel.spec.HugePages != HugeAlways {
		return false
	}
	p.kernel.cpu.Use(used.Huge)
	m := p.mappings.find(base)
	return m != nil && m.start <= base && base+HugeBytes <= m.end && m.file == nil && m.prot == ProtWrite
}

// takeHuge returns 512 adjacent frames. false: there are none, or too few
// others would be left.
func (k *Kernel) takeHuge() (frame, bool) {
	if k.memory.free-hugePages <= int(k.spec.WatermarkLow/PageBytes) {
		return 0, false
	}
	f, ok := k.memory.takeHuge()
	for i := range frame(hugePages) {
		if ok {
			k.memory.page(f + i).locked = true
		}
	}
	return f, ok
}

func (k *Kernel) giveHuge(f frame) {
	for i := range frame(hugePages) {
		k.memory.page(f + i).locked = false
		k.unused(f + i)
	}
}

// firstHuge provides a huge page for an untouched region. false: there is no
// such page.
func (p *pager) firstHuge(t *Thread, va uint64, w want) bool {
	k, base := p.kernel, va&^(HugeBytes-1)
	if !p.hugeMapping(base) || !p.tables.empty(base) {
		return false
	}
	f, ok := k.takeHuge()
	if !ok {
		return false
	}
	run(t, k.spec.FaultHuge, w.what)
	if !p.hugeMapping(base) || !p.tables.empty(base) {
		k.giveHuge(f)
		return true // check again
	}
	k.stats.Huge++
	k.stats.Minor++
	r := p.tables.regionFor(base)
	for a := base; a < base+HugeBytes; a += PageBytes {
		p.space.blank(a)
	}
	k.tables.free(r.table)
	p.fillHuge(r, f)
	return true
}

// fillHuge makes frames the huge page of a region. The region must have no
// table and no pages.
func (p *pager) fillHuge(r *region, f frame) {
	k := p.kernel
	r.table, r.huge, r.used = 0, true, hugePages
	for i := range frame(hugePages) {
		g := k.memory.page(f + i)
		g.locked, g.dirty = false, true
		g.add(p, r.base+uint64(i)*PageBytes)
		k.memory.enlist(f+i, onInactive)
		r.pte[i] = pte{f + i, pteMapped | pteWrite | pteYoung}
		g.wake()
	}
	p.resident += hugePages
}

// consider makes khugepaged check a region that may have enough pages by now.
func (p *pager) consider(va uint64) {
	k := p.kernel
	r := p.tables.region(va)
	if r.queued || r.huge || int(r.used) < k.spec.CollapseMin || k.spec.HugePages != HugeAlways || !p.hugeMapping(r.base) {
		return
	}
	r.queued = true
	k.jobs = append(k.jobs, job{p, r.base})
	k.cpu.Use(used.KernelThread)
	if k.khugepaged == nil {
		k.khugepaged = k.cpu.Kthread(k.spec.KernelCore, "khugepaged", k.collapses)
	} else {
		k.khugepaged.Wake()
	}
}

// collapses is the code of khugepaged.
func (k *Kernel) collapses(t *Thread) {
	for {
		if len(k.jobs) > 0 {
			t.Sleep(t.Now().Later(k.spec.CollapseDelay))
		}
		for len(k.jobs) > 0 {
			j := k.jobs[0]
			k.jobs = append(k.jobs[:0], k.jobs[1:]...)
			if !j.p.gone {
				j.p.collapse(t, j.base)
			}
		}
		t.Wait("small pages")
	}
}

// collapsible returns the region of an address if it can become a huge page
// now.
func (p *pager) collapsible(base uint64) *region {
	r := p.tables.regions[base>>hugeBits]
	if r == nil || r.huge || int(r.used) < p.kernel.spec.CollapseMin || !p.hugeMapping(base) {
		return nil
	}
	for _, e := range r.pte {
		switch {
		case e.flags&(pteBusy|pteSwap|pteNone|pteLent) != 0:
			return nil
		case e.flags&(pteMapped|pteZero) != pteMapped:
			continue
		}
		if g := p.kernel.memory.page(e.frame); g.pins > 0 || g.held > 0 || g.locked || len(g.maps) != 1 {
			return nil
		}
	}
	return r
}

// collapse turns the pages of a region into a huge page. While they are copied
// they are not accessible. Absent pages become present.
func (p *pager) collapse(t *Thread, base uint64) {
	p.lock.Lock(t, mmapLock)
	defer p.lock.Unlock(t)
	k := p.kernel
	if r := p.tables.regions[base>>hugeBits]; r != nil {
		r.queued = false
	}
	run(t, k.spec.CollapseCall, "khugepaged")
	r := p.collapsible(base)
	if r == nil {
		return
	}
	f, ok := k.takeHuge()
	if !ok {
		return
	}
	old := r.pte
	for i := range r.pte {
		e := &r.pte[i]
		if e.flags&(pteMapped|pteZero) == pteMapped {
			k.memory.delist(e.frame)
			k.memory.page(e.frame).locked = true
			*e = p.tables.expel(*e, pte{e.frame, e.flags | pteBusy})
		} else {
			*e = p.tables.expel(*e, pte{f, pteBusy})
		}
	}
	r.used = hugePages
	k.tables.free(r.table)
	r.table = 0
	p.tables.invalidate(base, base+HugeBytes, true)
	p.tables.drain(t, 1)
	run(t, k.spec.CollapsePage*sim.Time(hugePages), "khugepaged")
	k.stats.Collapsed++
	for i, e := range old {
		va := base + uint64(i)*PageBytes
		if e.flags&(pteMapped|pteZero) != pteMapped {
			p.space.blank(va)
			continue
		}
		g := k.memory.page(e.frame)
		g.detach(p, va)
		p.resident--
		g.locked = false
		g.wake()
		k.unused(e.frame)
	}
	p.fillHuge(r, f)
}
