package host

import "slices"

// written is the content of a range that has no bytes of its own yet: what
// devices have stored there, in order of addresses. The rest is zeros. Equal
// pieces exist once in a domain of the run, so that a broadcast of 64 KiB to
// 65,536 nodes takes 64 KiB and not 4 GiB. The range gets bytes of its own when
// somebody wants them side by side or changes some of them. Small pieces lie
// together in pages of its own: a message of 8 bytes in a buffer of 256 KiB takes
// 4 KiB.
//
// The bytes of an adopted range are elsewhere, and stay there.
type written struct {
	size  uint64
	parts []part
	of    *elsewhere // nil: the range is not adopted
}

// part is a piece that a device has stored.
type part struct {
	at   uint64 // in the range
	page *Page
}

func (p *part) end() uint64 { return p.at + uint64(len(p.page.Bytes())) }

const (
	// leastWritten is the size from which a new range waits for its bytes.
	leastWritten = 4 * PageLeast
	// partsMoved is how far from the end of the list a piece may come. Devices
	// store mostly in order; a list is no good for the rest.
	partsMoved = 64
)

// size is the number of bytes of a range.
func (r *memoryRange) size() uint64 {
	if r.written != nil {
		return r.written.size
	}
	return uint64(len(r.data))
}

// writtenAt returns the range of n bytes at addr if it has no bytes of its own.
func (a *AddressSpace) writtenAt(addr, n uint64) *memoryRange {
	if a.unopened == 0 {
		return nil
	}
	i := a.rangeOf(addr)
	if i < 0 || a.ranges[i].written == nil {
		return nil
	}
	r := &a.ranges[i]
	if off := addr - r.start; off > r.written.size || n > r.written.size-off {
		return nil
	}
	return r
}

// open gives a range bytes of its own.
func (a *AddressSpace) open(r *memoryRange) {
	w := r.written
	r.data, r.written = a.slab.take(int(w.size)), nil
	for i := range w.parts {
		p := &w.parts[i]
		copy(r.data[p.at:], p.page.Bytes())
		a.slab.Drop(p.page)
	}
	a.unopened--
}

// Deposit stores bytes at addr for a device. It returns false if they are not
// within one range, or elsewhere and gone.
func (a *AddressSpace) Deposit(addr uint64, b []byte) bool {
	r := a.writtenAt(addr, uint64(len(b)))
	kept := r != nil && a.keep(r.written, addr-r.start, b)
	if a.offered = nil; kept {
		return true
	}
	to, ok := a.Bytes(addr, uint64(len(b)))
	copy(to, b)
	return ok
}

// Offer lets the next Deposit share page p, if that holds the bytes.
func (a *AddressSpace) Offer(p *Page) { a.offered = p }

// Keeps reports whether Take can be called.
func (a *AddressSpace) Keeps() bool { return a.slab != nil }

// Take returns the n bytes at addr, at least 1, for a device that reads them: a
// page for one more user. It returns false if they are not within one range.
func (a *AddressSpace) Take(addr, n uint64) (*Page, bool) {
	r := a.writtenAt(addr, n)
	if r == nil {
		b, ok := a.Bytes(addr, n)
		if !ok {
			return nil, false
		}
		return a.slab.Keep(b), true
	}
	at := addr - r.start
	if p := r.written.find(at); p != nil && p.page.home != nil && p.at == at && p.end() == at+n {
		return a.slab.share(p.page.Bytes(), p.page), true
	}
	a.slab.pieces = slices.Grow(a.slab.pieces[:0], int(n))[:n]
	a.Load(addr, a.slab.pieces)
	return a.slab.Keep(a.slab.pieces), true
}

// Move copies n bytes, at least 1, from a range without bytes of its own to
// another range, and shares its pages where it can. It returns false if from is
// no such range: then nothing has changed.
func Move(a *AddressSpace, to, from, n uint64) bool {
	q := a.writtenAt(from, n)
	if q == nil || q == a.writtenAt(to, n) {
		return false
	}
	for at := uint64(0); at < n; {
		part, ok := a.Part(from+at, n-at)
		if !ok {
			break // their owner knows that they are gone
		}
		if p := q.written.find(from - q.start + at); p != nil {
			a.offered = p.page
		}
		a.Deposit(to+at, part)
		at += uint64(len(part))
	}
	return true
}

// Discard says that nobody needs the n bytes at addr any more. What they are
// then is not defined.
func (a *AddressSpace) Discard(addr, n uint64) {
	r := a.writtenAt(addr, n)
	if r == nil {
		return
	}
	w, at := r.written, addr-r.start
	w.parts = slices.DeleteFunc(w.parts, func(p part) bool {
		if p.at < at || p.end() > at+n {
			return false
		}
		a.slab.Drop(p.page)
		return true
	})
}

// keep adds a piece to a range without bytes of its own. It returns false if
// there is no place for it in the list.
func (a *AddressSpace) keep(w *written, at uint64, b []byte) bool {
	if w.of != nil {
		return w.of.store(at, b)
	}
	for len(b) > 0 {
		i := len(w.parts)
		for i > 0 && w.parts[i-1].end() > at {
			if i--; len(w.parts)-i > partsMoved {
				return false
			}
		}
		n := w.add(a, i, at, b)
		if n == 0 {
			return false
		}
		at, b = at+uint64(n), b[n:]
	}
	return true
}

// add adds the beginning of a piece. Part i of the list, if there is one, is
// the first that does not end before. It returns how many bytes it took.
func (w *written) add(a *AddressSpace, i int, at uint64, b []byte) int {
	end, next := at+uint64(len(b)), w.size
	if i < len(w.parts) {
		p := &w.parts[i]
		switch {
		case p.page.home == nil && p.at <= at:
			return copy(p.page.bytes[at-p.at:], b)
		case p.at == at && p.end() == end:
			old := p.page
			p.page = a.slab.share(b, a.offered)
			a.slab.Drop(old)
			return len(b)
		case p.at < end && p.page.home != nil:
			return 0
		}
		next = p.at
		end = min(end, next)
	}
	add := part{at: at}
	if n := end - at; n >= PageLeast || end == w.size {
		add.page = a.slab.share(b[:n], a.offered)
	} else {
		add.at = at / PageBytes * PageBytes
		next = min(next, add.at+PageBytes)
		if i > 0 {
			add.at = max(add.at, w.parts[i-1].end())
		}
		add.page = a.slab.own(int(next - add.at))
		end = at + uint64(copy(add.page.bytes[at-add.at:], b[:n]))
	}
	w.parts = slices.Insert(w.parts, i, add)
	return int(end - at)
}

// Part returns the memory at addr, 1 to n bytes, for a device that only reads; n
// is at least 1. It returns fewer than n where they are not side by side, and
// false if the n bytes are not within one range.
func (a *AddressSpace) Part(addr, n uint64) ([]byte, bool) {
	r := a.writtenAt(addr, n)
	switch {
	case r == nil:
		return a.Bytes(addr, n)
	case r.written.of != nil:
		b := r.written.of.load(addr-r.start, n)
		return b, b != nil
	}
	return r.written.part(addr-r.start, n), true
}

// Has reports whether the n bytes at addr are within one range.
func (a *AddressSpace) Has(addr, n uint64) bool {
	if a.writtenAt(addr, n) != nil {
		return true
	}
	_, ok := a.bytes(addr, n)
	return ok
}

// Apart reports whether the n bytes at addr lie in a range without bytes of its
// own. Deposit and Load move them.
func (a *AddressSpace) Apart(addr, n uint64) bool { return a.writtenAt(addr, n) != nil }

// Load copies the bytes at addr to b for a device, and returns how many: fewer
// than all if they are not within one range.
func (a *AddressSpace) Load(addr uint64, b []byte) (moved int) {
	for moved < len(b) {
		part, ok := a.Part(addr+uint64(moved), uint64(len(b)-moved))
		if !ok {
			break
		}
		moved += copy(b[moved:], part)
	}
	return moved
}

// find returns the first part that ends after at; nil: there is none.
func (w *written) find(at uint64) *part {
	lo, hi := 0, len(w.parts)
	for lo < hi {
		if mid := (lo + hi) / 2; w.parts[mid].end() > at {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == len(w.parts) {
		return nil
	}
	return &w.parts[lo]
}

// part returns 1 to n bytes of the content.
func (w *written) part(at, n uint64) []byte {
	p := w.find(at)
	switch {
	case p == nil:
		return zeros[:min(n, PageBytes)]
	case at < p.at:
		return zeros[:min(n, p.at-at, PageBytes)]
	}
	b := p.page.Bytes()[at-p.at:]
	return b[:min(n, uint64(len(b)))]
}
