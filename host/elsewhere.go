package host

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// Elsewhere is memory whose bytes are not the simulator's: a process of this
// computer has them, for example. Devices and programs read and write them at
// the instant of their accesses.
type Elsewhere interface {
	// Load copies the bytes from offset off on to b, and Store copies b to them.
	// They return false if not all of them are there.
	Load(off uint64, b []byte) bool
	Store(off uint64, b []byte) bool
}

// elsewhere is the content of an adopted range.
type elsewhere struct {
	Elsewhere
	read    []byte // of the latest load
	given   []byte // of the latest Replace
	windows []window
}

// window is a copy of some bytes for those who want a slice of them. What they
// change in it is stored before the next access.
type window struct {
	at        uint64
	data, was []byte
}

// Adopt adds to an address space a range of n bytes that are elsewhere, and
// returns its address. It has pages as other memory has, all absent at first, and
// stays until the end of the run. Errors: no room for the addresses.
func Adopt(a *AddressSpace, n uint64, of Elsewhere) (addr uint64, err error) {
	addr = a.next
	if p := a.process; p != nil {
		if addr, err = p.place(int(n)); err != nil {
			return 0, err
		}
		own := mapping{start: addr, end: pageEnd(addr + n), prot: ProtWrite}
		p.pager.mappings = append(p.pager.mappings, own)
	} else if addr+n < addr {
		return 0, fmt.Errorf("host: %w: no %d addresses are left", ErrNoMemory, n)
	}
	a.append(addr, nil, 0, false)
	a.ranges[len(a.ranges)-1].written = &written{size: n, of: &elsewhere{Elsewhere: of}}
	a.unopened++
	a.next = pageEnd(addr+n) + rangeAlign
	return addr, nil
}

// Replace stores bytes that a program has in other memory in place of those at
// addr, if these are elsewhere: nobody need load what goes. false: they are not.
func Replace(a *AddressSpace, addr uint64, b []byte) bool {
	r := a.writtenAt(addr, uint64(len(b)))
	if r == nil || r.written.of == nil {
		return false
	}
	e := r.written.of
	e.given = append(e.given[:0], b...) // b need not go to the heap
	e.store(addr-r.start, e.given)      // whose owner knows if they are gone
	return true
}

// Bound makes the addresses from start to end, multiples of 4 KiB in an adopted
// range of the process, one mapping: what its owner has mapped together. At first
// all of the range is one.
func (p *Process) Bound(start, end uint64) {
	ms := &p.pager.mappings
	ms.cut(start, end)
	i, _ := slices.BinarySearchFunc(*ms, start, func(m mapping, at uint64) int { return cmp.Compare(m.start, at) })
	*ms = slices.Insert(*ms, i, mapping{start: start, end: end, prot: ProtWrite})
}

// load returns n bytes, until the next call; nil: they are not there.
func (e *elsewhere) load(off, n uint64) []byte {
	e.settle()
	e.read = slices.Grow(e.read[:0], int(n))[:n]
	if !e.Load(off, e.read) {
		return nil
	}
	return e.read
}

// store stores bytes, also in the windows.
func (e *elsewhere) store(off uint64, b []byte) bool {
	e.settle()
	return e.put(off, b)
}

func (e *elsewhere) put(off uint64, b []byte) bool {
	for i := range e.windows {
		w := &e.windows[i]
		if from, to := max(off, w.at), min(off+uint64(len(b)), w.at+uint64(len(w.data))); from < to {
			copy(w.data[from-w.at:], b[from-off:to-off])
			copy(w.was[from-w.at:], b[from-off:to-off])
		}
	}
	return e.Store(off, b)
}

// window returns n bytes that one may change until close.
func (e *elsewhere) window(off, n uint64) ([]byte, bool) {
	b := e.load(off, n)
	if b == nil {
		return nil, false
	}
	for i := range e.windows {
		if w := &e.windows[i]; w.at <= off && off+n <= w.at+uint64(len(w.data)) {
			return w.data[off-w.at : off+n-w.at : off+n-w.at], true
		}
	}
	w := window{off, bytes.Clone(b), bytes.Clone(b)}
	e.windows = append(e.windows, w)
	return w.data, true
}

// settle stores what was changed in windows.
func (e *elsewhere) settle() {
	for i := range e.windows {
		w := &e.windows[i]
		for at := 0; at < len(w.data); {
			if w.data[at] == w.was[at] {
				at++
				continue
			}
			end := at + 1
			for end < len(w.data) && w.data[end] != w.was[end] {
				end++
			}
			e.put(w.at+uint64(at), w.data[at:end])
			at = end
		}
	}
}

// close stores what was changed, and forgets the windows.
func (e *elsewhere) close() {
	e.settle()
	clear(e.windows)
	e.windows = e.windows[:0]
}
