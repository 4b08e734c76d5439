package host

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/used"
)

// Fork makes a process with the same memory (fork). Private pages are shared
// until one process writes: copy on write. Pinned pages are copied now, so that
// devices keep using the parent's. Shared mappings stay shared. The child has
// no memory where DontFork was called. It has no notifiers and no locks. If a
// device writes to the parent before Fork returns, the child may get each
// written byte or not.
func (p *Process) Fork(t *Thread, name string) (*Process, error) {
	if err := p.pager.begin(t, "fork"); err != nil {
		return nil, err
	}
	defer p.pager.lock.Unlock(t)
	spec := p.kernel.spec
	p.kernel.cpu.Use(used.Fork)
	run(t, spec.ForkCall, "fork")
	c := p.kernel.NewProcess(name)
	c.pager.lock.owner = t // no other thread has access, except reclaim
	c.inherit(p)
	ranges := 0
	for _, base := range p.pager.tables.bases(0, p.space.next) {
		r := p.pager.tables.regions[base>>hugeBits]
		if r == nil { // reclaim or another thread was faster
			continue
		}
		n := p.forked(r)
		if n == 0 {
			continue
		}
		run(t, spec.ForkPage*simTime(n), "fork")
		if err := p.pager.share(t, &c.pager, base); err != nil {
			c.pager.lock.owner = nil
			return nil, fmt.Errorf("fork of process %s: %w", p.name, firstError(err, c.Exit(t)))
		}
		ranges++
	}
	p.pager.tables.drain(t, ranges)
	c.pager.lock.owner = nil
	return c, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// inherit gives a child its parent's mappings. Shared mappings keep their
// bytes; others get bytes of their own.
func (p *Process) inherit(parent *Process) {
	for i := range parent.space.ranges {
		r := &parent.space.ranges[i]
		if r.shared {
			p.space.share(r.start, r.data)
		} else {
			p.space.back(r.start, len(r.data))
		}
	}
	p.space.next = parent.space.next
	for _, m := range parent.pager.mappings {
		if m.unforked {
			p.space.remove(m.start, m.end)
			continue
		}
		m.locked = false
		p.pager.mappings = append(p.pager.mappings, m)
	}
}

// forked returns how many pages of a region a child gets.
func (p *Process) forked(r *region) (n int) {
	n = int(r.used)
	for i := range p.pager.mappings {
		if m := &p.pager.mappings[i]; m.unforked && m.end > r.base && m.start < r.base+HugeBytes {
			n -= p.pager.tables.count(max(m.start, r.base), min(m.end, r.base+HugeBytes))
		}
	}
	return n
}

// DontFork keeps the pages of n bytes at addr from children of a later Fork
// (madvise, MADV_DONTFORK). Drivers use it for memory shared with a device: a
// copy-on-write page could be replaced while the device, or a kernel thread,
// writes to it. All pages must be mapped. It takes no time; t may be nil before
// the program begins.
func (p *Process) DontFork(t *Thread, addr, n uint64) error {
	start, end, err := p.span("madvise", addr, n)
	if err != nil {
		return err
	}
	return p.mark(t, start, end, func(m *mapping) { m.unforked = true })
}

// share shares the pages of a region with a child.
func (p *pager) share(t *Thread, c *pager, base uint64) error {
	if err := p.calm(t, base, base+HugeBytes); err != nil {
		return err
	}
	var pinned []uint64
	p.tables.each(base, base+HugeBytes, func(va uint64, e pte) {
		switch {
		case p.mappings.find(va).unforked:
		case e.flags&pteSwap != 0:
			p.kernel.swap.use(e.frame)
			c.tables.set(va, e)
		case e.flags&pteZero != 0:
			c.space.blank(va)
			c.tables.set(va, e)
		case p.kernel.memory.page(e.frame).file != nil: // the child gets it at its first touch
		case p.kernel.memory.page(e.frame).pins > 0:
			pinned = append(pinned, va)
		default:
			e.flags &^= pteWrite
			p.tables.set(va, e)
			p.kernel.memory.page(e.frame).add(c, va)
			c.resident++
			c.space.lent++
			c.tables.set(va, pte{e.frame, e.flags&^pteYoung | pteLent})
		}
	})
	p.tables.invalidate(base, base+HugeBytes, false)
	for _, va := range pinned {
		f, err := p.kernel.alloc(t, c)
		if err != nil {
			return err
		}
		p.kernel.cpu.Use(used.CopyFault)
		run(t, p.kernel.spec.FaultCopy, "fork")
		e := p.tables.pte(va)
		if e.flags&pteMapped == 0 { // it was put back, and is on storage by now
			p.kernel.putBack(f)
			if e.flags&pteSwap != 0 {
				p.kernel.swap.use(e.frame)
				c.tables.set(va, e)
			}
			continue
		}
		p.kernel.stats.Copies++
		p.materialise(va, 1)
		copy(c.space.page(va), p.space.page(va))
		c.attach(va, f, e.flags&pteNone)
		p.kernel.memory.page(f).dirty = true
	}
	return nil
}

// Protect changes the access rights of a program to n bytes at addr, a multiple
// of 4 KiB (mprotect). All must be mapped. It returns when no device still
// makes accesses that are now forbidden.
func (p *Process) Protect(t *Thread, addr, n uint64, prot Prot) error {
	if addr%PageBytes != 0 {
		return fmt.Errorf("process %s: mprotect of %#x, expected a multiple of %d", p.name, addr, PageBytes)
	}
	if prot != ProtNone && prot != ProtRead && prot != ProtWrite {
		return fmt.Errorf("process %s: mprotect of %#x: no protection %d, expected ProtNone, ProtRead or ProtWrite", p.name, addr, prot)
	}
	addr, end, err := p.span("mprotect", addr, n)
	if err != nil {
		return err
	}
	p.pager.lock.Lock(t, mmapLock)
	defer p.pager.lock.Unlock(t)
	spec := p.kernel.spec
	p.kernel.cpu.Use(used.Protect)
	run(t, spec.ProtectCall, "mprotect")
	if err := p.pager.mappings.covers(addr, end); err != nil {
		return fmt.Errorf("process %s: %w", p.name, err)
	}
	run(t, spec.ProtectPage*simTime(p.pager.tables.count(addr, end)), "mprotect")
	if err := p.pager.calm(t, addr, end); err != nil {
		return err
	}
	p.pager.mappings.mark(addr, end, func(m *mapping) { m.prot = prot })
	p.pager.tables.each(addr, end, func(va uint64, e pte) {
		if e.flags &^= pteNone; prot == ProtNone {
			e.flags |= pteNone
		}
		if prot != ProtWrite {
			e.flags &^= pteWrite
		}
		p.pager.tables.set(va, e)
	})
	p.pager.tables.invalidate(addr, end, false)
	p.pager.tables.drain(t, 1)
	return nil
}
