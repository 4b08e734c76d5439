package host

import (
	"bytes"
	"fmt"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

func simTime(n int) sim.Time { return sim.Time(n) }

// want is the reason for needing a page, with the cost of a page that was never
// touched.
type want struct {
	write        bool
	absent, zero sim.Time
	what         string // name of the work
}

// Touch implements PageTable.
func (p *pager) Touch(addr, n uint64, write bool) (absent Pages) {
	for va := pageOf(addr); va < addr+n; va += PageBytes {
		r := p.tables.region(va)
		if r != nil {
			e := &r.pte[va>>pageBits%hugePages]
			if e.allows(write) {
				e.flags |= pteYoung
				if absent.Count > 0 {
					break
				}
				continue
			}
		}
		if absent.Count == 0 {
			absent.First = va
		}
		absent.Count++
	}
	if absent.Count == 0 {
		if p.space.lent > 0 {
			p.materialise(addr, n)
		}
		p.letGo()
	}
	return absent
}

// Fault implements PageTable. Pages it has brought stay until a Touch finds all
// pages that it asks for. So a program can have a whole range at once. If the
// range is larger than memory, the program gets an error.
func (p *pager) Fault(t *Thread, pages Pages, write bool) error {
	s := p.kernel.spec
	p.kernel.cpu.Use(used.PageFault)
	w := want{write: write, absent: s.FaultAbsent, zero: s.FaultZero, what: "page fault"}
	for i := range uint64(pages.Count) {
		va := pages.First + i*PageBytes
		if err := p.resolve(t, va, w); err != nil {
			p.letGo()
			return err
		}
		if t == nil { // before the program begins
			p.tables.admit(va)
		}
		p.hold(p.tables.pte(va).frame)
	}
	return nil
}

// prepare makes pages present and writable for the beginning of the program, as
// far as memory has room. To make room, it moves pages prepared earlier to
// storage, which takes no time; their bytes may still be set until the program
// begins. Devices have access to the pages.
func (p *pager) prepare(addr, n uint64) error {
	for va := pageOf(addr); va < addr+n; va += PageBytes {
		if err := p.resolve(nil, va, want{write: true}); err != nil {
			return err
		}
		p.tables.admit(va)
	}
	if p.space.lent > 0 {
		p.materialise(addr, n)
	}
	return nil
}

// hold keeps a page in memory until letGo.
func (p *pager) hold(f frame) {
	if f != zeroFrame {
		p.kernel.memory.page(f).held++
		p.held = append(p.held, f)
	}
}

func (p *pager) letGo() {
	for _, f := range p.held {
		p.kernel.memory.page(f).held--
		p.kernel.unused(f)
	}
	p.held = p.held[:0]
}

// FaultError is an access that the operating system cannot make possible.
type FaultError struct {
	Process string
	Addr    uint64
	Write   bool
	Err     error // ErrNoMapping or ErrPermission
}

// Error names process, address and reason.
func (e *FaultError) Error() string {
	what := "read"
	if e.Write {
		what = "write"
	}
	return fmt.Sprintf("process %s: %s of %#x: %v", e.Process, what, e.Addr, e.Err)
}

// Unwrap returns the reason.
func (e *FaultError) Unwrap() error { return e.Err }

// resolve makes a page usable as wanted. The page is usable at the moment
// resolve returns without an error.
func (p *pager) resolve(t *Thread, va uint64, w want) error {
	for {
		if err := p.check(va, w.write); err != nil {
			return err
		}
		var err error
		switch e := p.tables.pte(va); {
		case e.flags&pteBusy != 0:
			err = p.kernel.memory.page(e.frame).wait(t, "a page that is moved")
		case e.allows(w.write):
			p.tables.region(va).pte[va>>pageBits%hugePages].flags |= pteYoung
			return nil
		case e.flags&pteSwap != 0:
			err = p.swapIn(t, va, e, w)
		case e.flags&pteMapped == 0 && p.mappings.find(va).file != nil:
			err = p.firstOfFile(t, va, w)
		case e.flags&pteMapped == 0:
			err = p.first(t, va, w)
		default:
			err = p.writable(t, va, e, w)
		}
		if err != nil {
			return err
		}
	}
}

// check returns why an access is not allowed; nil: it is allowed.
func (p *pager) check(va uint64, write bool) error {
	switch m := p.mappings.find(va); {
	case m == nil:
		return &FaultError{p.name, va, write, ErrNoMapping}
	case !m.allows(write):
		return &FaultError{p.name, va, write, ErrPermission}
	}
	return nil
}

// same reports whether an entry did not change while the thread worked.
func (p *pager) same(va uint64, e pte, write bool) bool {
	return (p.tables.pte(va).flags|pteYoung) == (e.flags|pteYoung) && p.tables.pte(va).frame == e.frame && p.check(va, write) == nil
}

// first provides an anonymous page at its first touch.
func (p *pager) first(t *Thread, va uint64, w want) error {
	k := p.kernel
	if !w.write {
		run(t, w.zero, w.what)
		if p.same(va, pte{}, false) {
			k.stats.Zero++
			k.stats.Minor++
			p.space.blank(va)
			p.tables.set(va, pte{zeroFrame, pteMapped | pteZero | pteYoung})
		}
		return nil
	}
	if p.firstHuge(t, va, w) {
		return nil
	}
	f, err := k.alloc(t, p)
	if err != nil {
		return err
	}
	run(t, w.absent, w.what)
	if !p.same(va, pte{}, true) {
		k.putBack(f)
		return nil
	}
	k.stats.Absent++
	k.stats.Minor++
	p.space.blank(va)
	p.attach(va, f, pteWrite|pteYoung)
	k.memory.page(f).dirty = true
	return nil
}

// zeros is the content of a page that was never written.
var zeros [PageBytes]byte

// blank zeroes bytes. It does not write bytes that are zeros already, for
// example untouched memory: so they take no memory of the simulating computer.
func blank(b []byte) {
	if !bytes.Equal(b, zeros[:len(b)]) {
		clear(b)
	}
}

// writable makes a present page writable.
func (p *pager) writable(t *Thread, va uint64, e pte, w want) error {
	k := p.kernel
	g := k.memory.page(e.frame)
	if p.owns(va, e, g) {
		k.cpu.Use(used.DirtyFault)
		run(t, k.spec.FaultDirty, w.what)
		if p.same(va, e, true) && p.owns(va, e, g) {
			k.stats.Dirtied++
			k.stats.Minor++
			k.dirty(g)
			p.change(va, e.flags|pteWrite|pteYoung)
		}
		return nil
	}
	f, err := k.alloc(t, p)
	if err != nil {
		return err
	}
	k.cpu.Use(used.CopyFault)
	run(t, k.spec.FaultCopy, w.what)
	if !p.same(va, e, true) || p.owns(va, e, g) {
		k.putBack(f)
		return nil
	}
	k.stats.Copies++
	k.stats.Minor++
	p.clear(va, p.tables.pte(va))
	p.attach(va, f, pteWrite|pteYoung)
	k.memory.page(f).dirty = true
	p.tables.invalidate(va, va+PageBytes, false)
	return nil
}

// owns reports whether a page can be written without a copy: it is shared on
// purpose, or it has no other user.
func (p *pager) owns(va uint64, e pte, g *page) bool {
	if m := p.mappings.find(va); m != nil && m.shared {
		return true
	}
	return e.flags&pteZero == 0 && g.file == nil && len(g.maps) == 1
}

// attach maps a frame at an address that has no page.
func (p *pager) attach(va uint64, f frame, flags pteFlags) {
	k := p.kernel
	k.memory.page(f).add(p, va)
	k.memory.page(f).inHand = false
	if k.memory.page(f).list == onNone {
		k.memory.enlist(f, onInactive)
	}
	p.resident++
	p.tables.set(va, pte{f, pteMapped | flags})
	p.consider(va)
}

// change changes the access rights of a page and notifies devices.
func (p *pager) change(va uint64, flags pteFlags) {
	e := p.tables.pte(va)
	e.flags = flags
	p.tables.set(va, e)
	p.tables.invalidate(va, va+PageBytes, false)
}

// clear unmaps the page of an address and reports whether its frame is not
// mapped anywhere any more. Processes that have borrowed the bytes get them
// first.
func (p *pager) clear(va uint64, e pte) (last bool) {
	if e.flags&pteLent != 0 { // a device may still read it
		p.materialise(va, 1)
	}
	p.tables.set(va, pte{})
	if e.flags&pteSwap != 0 {
		p.kernel.swap.leave(p.space.page(va), e.frame)
		p.kernel.swap.drop(e.frame)
	}
	if e.flags&pteMapped == 0 || e.flags&pteZero != 0 {
		return false
	}
	p.resident--
	return p.kernel.memory.page(e.frame).detach(p, va)
}

// unused frees a frame that has no user.
func (k *Kernel) unused(f frame) {
	if f == zeroFrame {
		return
	}
	if g := k.memory.page(f); g.used && len(g.maps) == 0 && g.pins == 0 && g.held == 0 && g.file == nil && !g.locked && !g.inHand {
		if g.slot != 0 {
			k.swap.drop(g.slot)
		}
		k.memory.delist(f)
		k.memory.give(f)
		k.failures = 0
	}
}

// putBack ends a thread's use of a frame in hand.
func (k *Kernel) putBack(f frame) {
	if f != zeroFrame {
		k.memory.page(f).inHand = false
		k.unused(f)
	}
}

// materialise copies the bytes of pages that are in other processes' backings.
func (p *pager) materialise(addr, n uint64) {
	for va := pageOf(addr); va < addr+max(n, 1); va += PageBytes {
		if e := p.tables.pte(va); e.flags&pteLent != 0 {
			g := p.kernel.memory.page(e.frame)
			h := g.maps[g.home]
			p.borrow(va, h.p.space.page(h.va))
		}
	}
}

// borrow fills a page with bytes if it does not have them yet.
func (p *pager) borrow(va uint64, from []byte) {
	r := p.tables.region(va)
	e := &r.pte[va>>pageBits%hugePages]
	if e.flags&pteLent == 0 {
		return
	}
	e.flags &^= pteLent
	p.space.lent--
	to := p.space.page(va)
	copy(to, from)
	if poison.On && len(to) != len(from) {
		panic("host: pages of one frame have different lengths") // kernel bug
	}
}
