package host

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// Pin is a set of pages pinned by get_user_pages: until Put they stay in memory
// and keep their owner. The zero value is empty. A Pin can be used again after
// Put.
type Pin struct {
	kernel *Kernel
	frames []frame
}

// Pages returns the number of pages.
func (n *Pin) Pages() int { return len(n.frames) }

// Frame returns the physical address of page i.
func (n *Pin) Frame(i int) uint64 { return uint64(n.frames[i]) * PageBytes }

// Split moves the first pages, at most all, to another Pin, which must be
// empty.
func (n *Pin) Split(pages int, into *Pin) {
	into.kernel, into.frames = n.kernel, append(into.frames, n.frames[:pages]...)
	n.frames = append(n.frames[:0], n.frames[pages:]...)
}

// GetUserPages brings the pages of n bytes at addr into memory one by one and
// pins each; with write it makes them writable (get_user_pages). It stops with
// an error at the first page that it cannot have; the pages before stay pinned
// in pin. An absent anonymous page that is only read becomes the page of zeros
// and is not pinned. From then on devices have access to the pages: drivers
// call GetUserPages for their devices.
func (p *Process) GetUserPages(t *Thread, addr, n uint64, write bool, pin *Pin) error {
	if _, _, err := p.span("get_user_pages", addr, n); err != nil {
		return err
	}
	s := p.kernel.spec
	p.kernel.cpu.Use(used.Gup)
	run(t, s.GupCall, "get_user_pages")
	w := want{write: write, absent: s.GupAbsent, zero: s.GupAbsent, what: "get_user_pages"}
	pin.kernel = p.kernel
	told := s.GupFault == 0
	for va := pageOf(addr); va < addr+n; va += PageBytes {
		if p.pager.tables.pte(va).allows(write) {
			run(t, s.GupPresent, w.what)
		}
		if !told && !p.Present(va, write) {
			told = true
			run(t, s.GupFault, w.what)
		}
		if err := p.pager.resolve(t, va, w); err != nil {
			return err
		}
		p.pager.tables.admit(va)
		f := p.pager.tables.pte(va).frame
		if f != zeroFrame {
			p.kernel.memory.page(f).pins++
			p.kernel.stats.Pinned++
			p.kernel.stats.PinsHeld++
		}
		pin.frames = append(pin.frames, f)
	}
	return nil
}

// Put unpins the pages (put_page).
func (n *Pin) Put(t *Thread) {
	if n.kernel == nil {
		return
	}
	n.kernel.cpu.Use(used.PutPage)
	run(t, n.kernel.spec.PutPage*sim.Time(len(n.frames)), "put_page")
	for _, f := range n.frames {
		if f != zeroFrame {
			g := n.kernel.memory.page(f)
			g.pins--
			n.kernel.stats.PinsHeld--
			g.wake()
			n.kernel.unused(f)
		}
	}
	n.frames = n.frames[:0]
}

// Lock brings n bytes at addr into memory and keeps them there until Unlock
// (mlock), for devices, too. Pages may still move. After an error, the pages
// before the failing one stay locked.
func (p *Process) Lock(t *Thread, addr, n uint64) error {
	first, end, err := p.span("mlock", addr, n)
	if err != nil {
		return err
	}
	s := p.kernel.spec
	p.kernel.cpu.Use(used.Lock)
	run(t, s.LockCall, "mlock")
	if err := p.mark(t, first, end, func(m *mapping) { m.locked = true }); err != nil {
		return err
	}
	w := want{absent: s.LockAbsent, zero: s.LockAbsent, what: "mlock"}
	drained := s.LockDrain == 0
	for va := first; va < end; va += PageBytes {
		m := p.pager.mappings.find(va)
		if m == nil {
			return &FaultError{p.name, va, false, ErrNoMapping}
		}
		w.write = m.prot == ProtWrite
		if p.pager.tables.pte(va).allows(w.write) {
			if !drained {
				drained = true
				run(t, s.LockDrain, w.what)
			}
			run(t, s.LockPresent, w.what)
		}
		if err := p.pager.resolve(t, va, w); err != nil {
			return err
		}
		p.pager.tables.admit(va)
	}
	return nil
}

// Unlock ends Lock for n bytes at addr (munlock).
func (p *Process) Unlock(t *Thread, addr, n uint64) error {
	first, end, err := p.span("munlock", addr, n)
	if err != nil {
		return err
	}
	s := p.kernel.spec
	p.kernel.cpu.Use(used.Unlock)
	run(t, s.UnlockCall+s.UnlockPage*sim.Time((end-first)/PageBytes), "munlock")
	return p.mark(t, first, end, func(m *mapping) { m.locked = false })
}

// mark changes the mappings of the addresses from start to end. All must be
// mapped.
func (p *Process) mark(t *Thread, start, end uint64, change func(m *mapping)) error {
	p.pager.lock.Lock(t, mmapLock)
	defer p.pager.lock.Unlock(t)
	if err := p.pager.mappings.covers(start, end); err != nil {
		return fmt.Errorf("process %s: %w", p.name, err)
	}
	p.pager.mappings.mark(start, end, change)
	return nil
}
