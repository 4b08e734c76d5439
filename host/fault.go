package host

import (
	"bytes"
	"fmt"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/sim"
)

func simTime(n int) sim.Time { return sim.Time(n) }

// want is what somebody needs a page for, and what one that nobody has touched costs.
type want struct {
	write        bool
	absent, zero sim.Time
	what         string // the name of the work
}

// Touch implements PageTable.
func (p *Process) Touch(addr, n uint64, write bool) (absent Pages) {
	if addr+n < addr {
		return Pages{First: pageOf(addr), Count: 1} // Fault says that there is none
	}
	for va := pageOf(addr); va < addr+n; va += PageBytes {
		r := p.region(va)
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

// Fault implements PageTable. What it has brought stays until the next Touch
// that finds all that it asks for, so that a program can have all of a range at
// once; one that asks for more than there is memory gets an error.
func (p *Process) Fault(t *Thread, pages Pages, write bool) error {
	s := p.kernel.spec
	w := want{write: write, absent: s.FaultAbsent, zero: s.FaultZero, what: "page fault"}
	for i := range uint64(pages.Count) {
		va := pages.First + i*PageBytes
		if err := p.resolve(t, va, w); err != nil {
			p.letGo()
			return err
		}
		if t == nil { // prepared
			p.admit(va)
		}
		p.hold(p.pte(va).frame)
	}
	return nil
}

// prepare gives pages that are to be there, and may be written, when the
// program begins, as far as there is room: what was prepared before goes to
// storage for them, which takes no time. Its bytes may be set all the same
// until the program begins. Devices have them.
func (p *Process) prepare(addr, n uint64) error {
	for va := pageOf(addr); va < addr+n; va += PageBytes {
		if err := p.resolve(nil, va, want{write: true}); err != nil {
			return err
		}
		p.admit(va)
	}
	if p.space.lent > 0 {
		p.materialise(addr, n)
	}
	return nil
}

// hold keeps a page in memory until letGo.
func (p *Process) hold(f frame) {
	if f != zeroFrame {
		p.kernel.memory.page(f).held++
		p.held = append(p.held, f)
	}
}

func (p *Process) letGo() {
	for _, f := range p.held {
		p.kernel.memory.page(f).held--
		p.kernel.unused(f)
	}
	p.held = p.held[:0]
}

// FaultError is an access that no operating system can make possible.
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

// resolve gives a page: when it returns without an error, the page can be used
// as wanted at this moment.
func (p *Process) resolve(t *Thread, va uint64, w want) error {
	for {
		if err := p.check(va, w.write); err != nil {
			return err
		}
		var err error
		switch e := p.pte(va); {
		case e.flags&pteBusy != 0:
			err = p.kernel.memory.page(e.frame).wait(t, "a page that is moved")
		case e.allows(w.write):
			p.region(va).pte[va>>pageBits%hugePages].flags |= pteYoung
			return nil
		case e.flags&pteSwap != 0:
			err = p.swapIn(t, va, e, w)
		case e.flags&pteMapped == 0 && p.mapping(va).file != nil:
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

// check says why an access is not allowed, nil if it is.
func (p *Process) check(va uint64, write bool) error {
	switch m := p.mapping(va); {
	case m == nil:
		return &FaultError{p.name, va, write, ErrNoMapping}
	case !m.allows(write):
		return &FaultError{p.name, va, write, ErrPermission}
	}
	return nil
}

// same reports whether an entry is as it was before the thread has worked for it.
func (p *Process) same(va uint64, e pte, write bool) bool {
	return (p.pte(va).flags|pteYoung) == (e.flags|pteYoung) && p.pte(va).frame == e.frame && p.check(va, write) == nil
}

// first gives an anonymous page that nobody has touched.
func (p *Process) first(t *Thread, va uint64, w want) error {
	k := p.kernel
	if !w.write {
		run(t, w.zero, w.what)
		if p.same(va, pte{}, false) {
			k.stats.Zero++
			k.stats.Minor++
			p.blank(va)
			p.set(va, pte{zeroFrame, pteMapped | pteZero | pteYoung})
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
	p.blank(va)
	p.attach(va, f, pteWrite|pteYoung)
	k.memory.page(f).dirty = true
	return nil
}

// zeros is a page that nobody has written to.
var zeros [PageBytes]byte

// blank makes the bytes of a page that comes for the first time zeros. As long
// as the process has not given pages back they are: nobody writes to a page
// before it is there. Not to look saves the computer that simulates two page
// faults of its own: one for the look, and one when the page is written after
// it.
func (p *Process) blank(va uint64) {
	if p.hollowed || poison.On {
		blank(p.bytes(va))
	}
}

// blank makes bytes zeros. Those that are, as those of memory that nobody has
// written to, it leaves alone: they take none of the computer that simulates.
func blank(b []byte) {
	if !bytes.Equal(b, zeros[:len(b)]) {
		clear(b)
	}
}

// writable makes a page that is there writable.
func (p *Process) writable(t *Thread, va uint64, e pte, w want) error {
	k := p.kernel
	g := k.memory.page(e.frame)
	if p.owns(va, e, g) {
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
	run(t, k.spec.FaultCopy, w.what)
	if !p.same(va, e, true) || p.owns(va, e, g) {
		k.putBack(f)
		return nil
	}
	k.stats.Copies++
	k.stats.Minor++
	p.clear(va, p.pte(va))
	p.attach(va, f, pteWrite|pteYoung)
	k.memory.page(f).dirty = true
	p.invalidate(va, va+PageBytes, false)
	return nil
}

// owns reports whether the page of an entry needs no copy before it is written:
// it is shared on purpose, or nobody else has it.
func (p *Process) owns(va uint64, e pte, g *page) bool {
	if m := p.mapping(va); m != nil && m.shared {
		return true
	}
	return e.flags&pteZero == 0 && g.file == nil && len(g.maps) == 1
}

// attach makes a page that of an address that has none.
func (p *Process) attach(va uint64, f frame, flags pteFlags) {
	k := p.kernel
	k.memory.page(f).add(p, va)
	k.memory.page(f).inHand = false
	if k.memory.page(f).list == onNone {
		k.enlist(f, onInactive)
	}
	p.resident++
	p.set(va, pte{f, pteMapped | flags})
	p.consider(va)
}

// change changes what may be done with a page, and tells devices.
func (p *Process) change(va uint64, flags pteFlags) {
	e := p.pte(va)
	e.flags = flags
	p.set(va, e)
	p.invalidate(va, va+PageBytes, false)
}

// clear takes the page of an address away and reports whether its frame is no
// longer mapped anywhere. Whoever has borrowed the bytes has them then.
func (p *Process) clear(va uint64, e pte) (last bool) {
	if e.flags&pteLent != 0 { // a device may still be reading it
		p.materialise(va, 1)
	}
	p.set(va, pte{})
	if e.flags&pteSwap != 0 {
		p.kernel.swap.leave(p.bytes(va), e.frame)
		p.kernel.swap.drop(e.frame)
	}
	if e.flags&pteMapped == 0 || e.flags&pteZero != 0 {
		return false
	}
	p.resident--
	return p.kernel.detach(e.frame, p, va)
}

// detach notes that a page is no longer mapped at a place, and reports whether
// it is mapped nowhere any more.
func (k *Kernel) detach(f frame, p *Process, va uint64) (last bool) {
	g := k.memory.page(f)
	i := g.find(p, va)
	if int(g.home) == i && len(g.maps) > 1 && g.file == nil {
		heir := (i + 1) % len(g.maps)
		h := g.maps[heir]
		h.p.borrow(h.va, p.bytes(va))
		g.home = int32(heir)
	}
	end := len(g.maps) - 1
	if int(g.home) == end {
		g.home = int32(i)
	}
	g.maps[i] = g.maps[end]
	g.maps[end] = place{}
	g.maps = g.maps[:end]
	if end == 0 {
		g.home = 0
	}
	return end == 0
}

// unused gives a frame back if nobody has it.
func (k *Kernel) unused(f frame) {
	if f == zeroFrame {
		return
	}
	if g := k.memory.page(f); g.used && len(g.maps) == 0 && g.pins == 0 && g.held == 0 && g.file == nil && !g.locked && !g.inHand {
		if g.slot != 0 {
			k.swap.drop(g.slot)
		}
		k.delist(f)
		k.memory.give(f)
		k.failures = 0
	}
}

// putBack ends a thread's having a frame in hand.
func (k *Kernel) putBack(f frame) {
	if f != zeroFrame {
		k.memory.page(f).inHand = false
		k.unused(f)
	}
}

// materialise brings the bytes of pages that are in other processes' backings.
func (p *Process) materialise(addr, n uint64) {
	for va := pageOf(addr); va < addr+max(n, 1); va += PageBytes {
		if e := p.pte(va); e.flags&pteLent != 0 {
			g := p.kernel.memory.page(e.frame)
			h := g.maps[g.home]
			p.borrow(va, h.p.bytes(h.va))
		}
	}
}

// borrow fills a page with bytes, if it does not have them yet.
func (p *Process) borrow(va uint64, from []byte) {
	r := p.region(va)
	e := &r.pte[va>>pageBits%hugePages]
	if e.flags&pteLent == 0 {
		return
	}
	e.flags &^= pteLent
	p.space.lent--
	to := p.bytes(va)
	copy(to, from)
	if poison.On && len(to) != len(from) {
		panic("host: pages of one frame have different lengths") // a mistake of the kernel's
	}
}
