package host

import (
	"bytes"

	"github.com/spinsim/spinsim/internal/used"
)

// swapSpace is the slots of the storage for pages of anonymous memory. A slot
// keeps its bytes as long as something refers to it: entries of tables, shared
// memory, or an unchanged page in memory. Slot 0 is not used.
type swapSpace struct {
	slots []slot
	free  []frame
	total int
	used  int
}

type slot struct {
	refs int32
	data []byte // nil: zeros
	// if not nil, place of its bytes: a process that is being set up may write
	// them until its program begins
	early []byte
}

// take returns a slot with one reference; false: all are in use.
func (s *swapSpace) take() (frame, bool) {
	if s.used >= s.total {
		return 0, false
	}
	s.used++
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.slots[i].refs = 1
		return i, true
	}
	if len(s.slots) == 0 {
		s.slots = append(s.slots, slot{})
	}
	s.slots = append(s.slots, slot{refs: 1})
	return frame(len(s.slots) - 1), true
}

func (s *swapSpace) store(i frame, data []byte) {
	at := &s.slots[i]
	at.early = nil
	if bytes.Equal(data, zeros[:len(data)]) {
		at.data = nil
		return
	}
	if at.data == nil {
		at.data = make([]byte, PageBytes)
	}
	copy(at.data, data)
}

// load copies the content of a slot to into.
func (s *swapSpace) load(into []byte, i frame) {
	if early := s.slots[i].early; early != nil {
		s.store(i, early)
	}
	if data := s.slots[i].data; data != nil {
		copy(into, data)
	} else {
		blank(into)
	}
}

// data returns the content of a slot; bytes after its end are zeros.
func (s *swapSpace) data(i frame) []byte {
	if at := &s.slots[i]; at.early != nil {
		return at.early
	}
	return s.slots[i].data
}

// leave moves the content of a slot away from where it was, because that place
// is needed.
func (s *swapSpace) leave(bytes []byte, i frame) {
	if early := s.slots[i].early; early != nil && &early[0] == &bytes[0] {
		s.store(i, early)
	}
}

// use adds a reference to a slot.
func (s *swapSpace) use(i frame) { s.slots[i].refs++ }

func (s *swapSpace) drop(i frame) {
	at := &s.slots[i]
	if at.refs--; at.refs < 0 {
		panic("host: a slot of swap is freed twice") // kernel bug
	}
	if at.refs == 0 {
		at.data, at.early = nil, nil
		s.used--
		s.free = append(s.free, i)
	}
}

// swapIn brings in a page from a slot: a major fault.
func (p *pager) swapIn(t *Thread, va uint64, e pte, w want) error {
	k := p.kernel
	f, err := k.alloc(t, p)
	if err != nil {
		return err
	}
	if p.tables.pte(va) != e {
		k.putBack(f)
		return nil
	}
	g := k.memory.page(f)
	g.held++
	g.slot = e.frame // the entry's reference
	p.tables.set(va, pte{f, pteBusy})
	if t != nil { // pages that return before the program begins never left
		k.cpu.Use(used.MajorFault)
		run(t, k.spec.FaultMajor, w.what)
		k.storage.transfer(t, PageBytes, false)
		k.stats.Major++
		k.stats.SwappedIn++
	}
	k.swap.load(p.space.page(va), e.frame)
	g.held--
	p.tables.set(va, pte{})
	p.attach(va, f, e.flags&pteNone|pteYoung)
	// else the slot keeps the content as long as the page is unchanged
	if k.swap.slots[e.frame].refs > 1 || w.write {
		k.dirty(g)
	}
	if w.write {
		p.tables.region(va).pte[va>>pageBits%hugePages].flags |= pteWrite
	}
	g.wake()
	return nil
}

// dirty records that a page changes: its copy on storage is out of date.
func (k *Kernel) dirty(g *page) {
	g.dirty = true
	if g.slot != 0 {
		k.swap.drop(g.slot)
		g.slot = 0
	}
}
