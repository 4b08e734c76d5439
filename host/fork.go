package host

import (
	"fmt"
	"slices"
)

// Fork makes a process with the same memory (fork). Private pages are shared until one of the two writes: copy on write. Pinned pages are copied now, so
// that devices go on with those of the parent. What is mapped shared is shared. The child has no notifiers and no locks. What a device writes to
// the parent meanwhile may or may not be the child's, byte by byte, until Fork returns.
func (p *Process) Fork(t *Thread, name string) (*Process, error) {
	p.lock.lock(t)
	defer p.lock.unlock(t)
	spec := p.kernel.spec
	run(t, spec.ForkCall, "fork")
	c := p.kernel.NewProcess(name)
	c.lock.owner = t // nobody else knows it, but reclaim does
	c.mappings = slices.Clone(p.mappings)
	for i := range c.mappings {
		c.mappings[i].locked = false
	}
	for i := range p.space.ranges {
		c.inherit(&p.space.ranges[i])
	}
	c.space.next = p.space.next
	ranges := 0
	for _, base := range p.bases(0, p.space.next) {
		r := p.regions[base>>hugeBits]
		if r == nil { // reclaim or another thread has been faster
			continue
		}
		run(t, spec.ForkPage*simTime(int(r.used)), "fork")
		if err := p.share(t, c, base); err != nil {
			c.lock.owner = nil
			return nil, fmt.Errorf("fork of process %s: %w", p.name, firstError(err, c.Exit(t)))
		}
		ranges++
	}
	p.drain(t, ranges)
	c.lock.owner = nil
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

// inherit gives a child a range of its parent's: bytes of its own, or the same if it is mapped shared.
func (p *Process) inherit(r *memoryRange) {
	if r.shared {
		p.space.share(r.start, r.data)
		return
	}
	p.back(r.start, len(r.data))
}

// share shares the pages of a region with a child.
func (p *Process) share(t *Thread, c *Process, base uint64) error {
	if err := p.calm(t, base, base+HugeBytes); err != nil {
		return err
	}
	var pinned []uint64
	p.each(base, base+HugeBytes, func(va uint64, e pte) {
		switch {
		case e.flags&pteSwap != 0:
			p.kernel.swap.use(e.frame)
			c.set(va, e)
		case e.flags&pteZero != 0:
			clear(c.bytes(va))
			c.set(va, e)
		case p.kernel.memory.page(e.frame).file != nil: // it comes when it is touched
		case p.kernel.memory.page(e.frame).pins > 0:
			pinned = append(pinned, va)
		default:
			e.flags &^= pteWrite
			p.set(va, e)
			p.kernel.memory.page(e.frame).add(c, va)
			c.resident++
			c.lent++
			c.set(va, pte{e.frame, e.flags&^pteYoung | pteLent})
		}
	})
	p.invalidate(base, base+HugeBytes, false)
	for _, va := range pinned {
		f, err := p.kernel.alloc(t, c)
		if err != nil {
			return err
		}
		run(t, p.kernel.spec.FaultCopy, "fork")
		e := p.pte(va)
		if e.flags&pteMapped == 0 { // it was put, and is on storage meanwhile
			p.kernel.putBack(f)
			if e.flags&pteSwap != 0 {
				p.kernel.swap.use(e.frame)
				c.set(va, e)
			}
			continue
		}
		p.kernel.stats.Copies++
		p.materialise(va, 1)
		copy(c.bytes(va), p.bytes(va))
		c.attach(va, f, e.flags&pteNone)
		p.kernel.memory.page(f).dirty = true
	}
	return nil
}

// Protect changes what a program may do with n bytes at addr, a multiple of 4 KiB (mprotect). All must be mapped. It returns when no device does any
// more what it may no longer.
func (p *Process) Protect(t *Thread, addr, n uint64, prot Prot) error {
	if addr%PageBytes != 0 {
		return fmt.Errorf("process %s: mprotect of %#x, expected a multiple of %d", p.name, addr, PageBytes)
	}
	p.lock.lock(t)
	defer p.lock.unlock(t)
	spec, end := p.kernel.spec, pageEnd(addr+n)
	run(t, spec.ProtectCall, "mprotect")
	if err := p.mapped(addr, end); err != nil {
		return err
	}
	run(t, spec.ProtectPage*simTime(p.count(addr, end)), "mprotect")
	if err := p.calm(t, addr, end); err != nil {
		return err
	}
	p.split(addr)
	p.split(end)
	for i := range p.mappings {
		if m := &p.mappings[i]; m.start >= addr && m.end <= end {
			m.prot = prot
		}
	}
	p.each(addr, end, func(va uint64, e pte) {
		if e.flags &^= pteNone; prot == ProtNone {
			e.flags |= pteNone
		}
		if prot != ProtWrite {
			e.flags &^= pteWrite
		}
		p.set(va, e)
	})
	p.invalidate(addr, end, false)
	p.drain(t, 1)
	return nil
}
