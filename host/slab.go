package host

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/poison"
)

// Slab is where the address spaces and the NICs of many nodes get their bytes.
// Large pages of the simulating machine back them, so that the first write to
// each small page is no fault. Equal bytes exist once: in a broadcast to
// thousands of nodes the same packets are in all frames and memories, and take
// the room and the cache lines of one. It is for one goroutine at a time, but
// others may read the bytes of its pages. The zero value is ready.
type Slab struct {
	free []byte
	next int // size of the next piece: each is twice as large as the one before

	recent []*Page   // by print: a later page takes the place of another
	unused [][]*Page // by their capacity in grains
	fresh  []Page
	live   poison.Count
	pieces []byte // buffer of Take
}

// Page is bytes that do not change while somebody uses them.
type Page struct {
	bytes []byte
	uses  int
	print uint64
	home  *Slab // nil: the bytes are one user's own, who changes them
}

// Bytes returns the bytes, only for reading.
func (p *Page) Bytes() []byte { return p.bytes }

const (
	slabBytes  = 1 << 25 // the largest piece
	firstBytes = 1 << 15
	recentBits = 12
	grain      = 256
	// mostKept is the size of the largest page that is used again. No packet is
	// larger.
	mostKept = 1 << 17
	// PageLeast is the number of bytes from which it pays to look for equal ones:
	// copies of fewer bytes are cheaper.
	PageLeast = 1024
)

// take returns n zeroed bytes.
func (s *Slab) take(n int) []byte {
	if s == nil || n > slabBytes/8 {
		memory.Ask(int64(n))
		return make([]byte, n)
	}
	const line = 64
	room := (n + line - 1) &^ (line - 1)
	for room > len(s.free) {
		s.next = min(max(2*s.next, firstBytes), slabBytes)
		memory.Ask(int64(s.next))
		s.free = make([]byte, s.next)
		lazy.Huge(s.free)
	}
	b := s.free[:n:n]
	s.free = s.free[room:]
	return b
}

// Keep returns a page with the bytes of b, at least 1, for one more user. If one
// of the latest pages has them already, it is that page.
func (s *Slab) Keep(b []byte) *Page {
	s.another()
	mark := printOf(b)
	at := &s.recent[mark>>(64-recentBits)]
	if p := *at; p != nil && p.print == mark && bytes.Equal(p.bytes, b) {
		p.uses++
		return p
	}
	p := s.page(len(b))
	copy(p.bytes, b)
	p.uses, p.print, p.home = 1, mark, s
	*at = p
	return p
}

// own returns a page of n zeros, at least 1, that its only user changes.
func (s *Slab) own(n int) *Page {
	s.another()
	p := s.page(n)
	clear(p.bytes)
	p.uses, p.print, p.home = 1, 0, nil
	return p
}

// another counts a use of a page.
func (s *Slab) another() {
	if s.recent == nil {
		s.recent, s.unused = make([]*Page, 1<<recentBits), make([][]*Page, mostKept/grain+1)
	}
	s.live.Add(1)
}

// share is Keep without a copy, if page p holds b and is of this slab. p may be
// nil.
func (s *Slab) share(b []byte, p *Page) *Page {
	if p == nil || p.home != s || len(b) != len(p.bytes) || &b[0] != &p.bytes[0] {
		return s.Keep(b)
	}
	s.live.Add(1)
	p.uses++
	return p
}

// page returns a page with room for n bytes.
func (s *Slab) page(n int) *Page {
	grains := (n + grain - 1) / grain
	if grains < len(s.unused) {
		if k := len(s.unused[grains]) - 1; k >= 0 {
			p := s.unused[grains][k]
			s.unused[grains] = s.unused[grains][:k]
			p.bytes = p.bytes[:n]
			return p
		}
	}
	if len(s.fresh) == 0 {
		s.fresh = make([]Page, 64)
	}
	p := &s.fresh[0]
	s.fresh = s.fresh[1:]
	p.bytes = s.take(grains * grain)[:n]
	return p
}

// Drop ends one use of a page of the slab. After the last the page may get other
// bytes.
func (s *Slab) Drop(p *Page) {
	s.live.Add(-1)
	if p.uses--; p.uses > 0 {
		return
	}
	if at := &s.recent[p.print>>(64-recentBits)]; *at == p {
		*at = nil
	}
	if poison.On {
		poison.Bytes(p.bytes)
		return
	}
	if grains := cap(p.bytes) / grain; grains < len(s.unused) {
		s.unused[grains] = append(s.unused[grains], p)
	}
}

// printOf is a number that differs for most different bytes. It looks at few of
// them: Keep compares the rest.
func printOf(b []byte) uint64 {
	const odd = 0x9e3779b97f4a7c15
	mark := uint64(len(b)) * odd
	if len(b) < 8 {
		for _, x := range b {
			mark = (mark ^ uint64(x)) * odd
		}
		return mark
	}
	const looks = 8
	step := (len(b) - 8) / (looks - 1)
	for i := range looks {
		hi, lo := bits.Mul64(mark^binary.LittleEndian.Uint64(b[i*step:]), odd)
		mark = hi ^ lo
	}
	return mark
}
