package host_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/sim"
)

func (g *job) step() {
	r := g.m.rng
	switch op := r.IntN(100); {
	case op < 24:
		g.access(true)
	case op < 48:
		g.access(false)
	case op < 68:
		g.m.device.start(g)
	case op < 72:
		g.mmap()
	case op < 75:
		g.unmap()
	case op < 79:
		g.protect()
	case op < 81:
		g.fork()
	case op < 86:
		g.pin()
	case op < 90:
		g.unpin()
	case op < 92:
		g.lock()
	case op < 93:
		g.migrate()
	case op < 94:
		g.discard()
	case op < 95:
		g.pageOut()
	case op < 97:
		g.sweep()
	case op == 97:
		err := g.m.file.Sync(g.th)
		g.m.check(err == nil, "%v", err)
	case op == 98 && len(g.m.programs) > 2:
		g.over = true
	default:
		g.th.Sleep(g.th.Now() + sim.Time(r.IntN(200))*us)
	}
}

// pick returns some adjacent pages of one mapping, false if there are none.
func (g *job) pick(most int) (x *refMap, first, n int, ok bool) {
	if len(g.maps) == 0 {
		return nil, 0, 0, false
	}
	x = g.maps[g.m.rng.IntN(len(g.maps))]
	first = g.m.rng.IntN(len(x.pages))
	if len(x.pages) > 100 && g.m.rng.IntN(2) == 0 {
		first = g.m.rng.IntN(len(x.pages)/64) * 64 // some places are used more often
	}
	most = 1 + g.m.rng.IntN(most)
	for n = 0; n < most && first+n < len(x.pages) && x.pages[first+n] != nil; n++ {
	}
	return x, first, n, n > 0
}

// span returns the offsets in a mapping of some bytes that begin in page first
// and end n pages later.
func (g *job) span(x *refMap, first, n int) (from, to int) {
	end := min((first+n)*page, x.length)
	from = first*page + g.m.rng.IntN(min(page, end-first*page))
	return from, from + 1 + g.m.rng.IntN(end-from)
}

// access reads or writes as a program does.
func (g *job) access(write bool) {
	x, first, n, ok := g.pick(4)
	if !ok {
		return
	}
	from, to := g.span(x, first, n)
	s, addr, size := g.p.Space(), x.addr+uint64(from), uint64(to-from)
	allowed := true
	for i := from / page; i <= (to-1)/page; i++ {
		allowed = allowed && (x.prot[i] == host.ProtWrite || !write && x.prot[i] == host.ProtRead)
	}
	for absent := s.Touch(addr, size, write); absent.Count > 0; absent = s.Touch(addr, size, write) {
		if err := s.Fault(g.th, absent, write); err != nil {
			g.m.check(g.m.isShort(err) || !allowed && errors.Is(err, host.ErrPermission), "access of %#x: %v", addr, err)
			return
		}
	}
	g.m.check(allowed, "access of %#x is not allowed", addr)
	b, ok := s.Cores(addr, size)
	g.m.check(ok, "%#x has no bytes", addr)
	if !ok {
		return
	}
	g.bytes(x, from, b, write)
	s.Settle()
}

// sweep writes to many pages, one after the other.
func (g *job) sweep() {
	x, first, n, ok := g.pick(400)
	for i := first; ok && i < first+n && x.prot[i] == host.ProtWrite && x.pages[i] != nil; i++ {
		s, addr := g.p.Space(), x.addr+uint64(i)*page
		for absent := s.Touch(addr, 1, true); absent.Count > 0; absent = s.Touch(addr, 1, true) {
			if err := s.Fault(g.th, absent, true); err != nil {
				g.m.check(g.m.isShort(err), "access of %#x: %v", addr, err)
				return
			}
		}
		if b, is := s.Cores(addr, 1); is {
			g.bytes(x, i*page, b, true)
		}
	}
}

// bytes writes or compares.
func (g *job) bytes(x *refMap, from int, b []byte, write bool) {
	for len(b) > 0 {
		i, off := from/page, from%page
		n := min(page-off, len(b))
		if write {
			fill(g.m.rng, b[:n])
			x.pages[i].write(off, b[:n])
		} else {
			g.m.check(x.pages[i].match(off, b[:n]), "%s reads wrong bytes at %#x", g.p.Name(), x.addr+uint64(from))
		}
		b, from = b[n:], from+n
	}
}

func fill(r *rand.Rand, b []byte) {
	v := r.Uint64()
	for i := range b {
		b[i] = byte(v >> (i % 8 * 8))
	}
}

func (m *model) isShort(err error) bool {
	if errors.Is(err, host.ErrNoMemory) {
		m.short++
		return true
	}
	return false
}

func (g *job) mmap() {
	r := g.m.rng
	if len(g.maps) >= 8 {
		g.unmap()
		return
	}
	n := 1 + r.IntN(24*page)
	switch size := r.IntN(6); {
	case size == 0 || size > 2 && g.m.large:
		n = 2<<20 + r.IntN(2<<20)
	case size == 1:
		n = 1 + r.IntN(1<<20)
	}
	var pages, origin []*refPage
	var addr uint64
	var err error
	kind := r.IntN(5)
	switch kind {
	case 0, 1:
		n = min(n, 20*page)
		first := r.IntN(20 - (n+page-1)/page + 1)
		addr, err = g.p.MapFile(g.th, []*host.File{g.m.constant, g.m.file}[kind], first*page, n, kind == 1)
		for i := range (n + page - 1) / page {
			at := g.m.content[kind][first+i]
			if kind == 0 {
				origin = append(origin, at)
				at = at.child()
			}
			pages = append(pages, at)
		}
	case 2:
		addr, err = g.p.MapShared(g.th, n)
	default:
		addr, err = g.p.Map(g.th, n)
	}
	if err != nil {
		g.m.check(false, "mmap: %v", err)
		return
	}
	for len(pages) < (n+page-1)/page {
		pages = append(pages, &refPage{})
	}
	prot := slices.Repeat([]host.Prot{host.ProtWrite}, len(pages))
	g.maps = append(g.maps, &refMap{addr: addr, length: n, pages: pages, origin: origin, prot: prot, shared: kind == 1 || kind == 2, alone: make([]bool, len(pages))})
}

func (g *job) unmap() {
	if len(g.maps) == 0 {
		return
	}
	i := g.m.rng.IntN(len(g.maps))
	x := g.maps[i]
	first := g.m.rng.IntN(len(x.pages))
	n := 1 + g.m.rng.IntN(len(x.pages)-first)
	if g.m.rng.IntN(2) == 0 {
		first, n = 0, len(x.pages)
	}
	clear(x.pages[first : first+n])
	if !slices.ContainsFunc(x.pages, func(p *refPage) bool { return p != nil }) {
		g.maps = slices.Delete(g.maps, i, i+1)
	}
	addr := x.addr + uint64(first)*page
	err := g.p.Unmap(g.th, addr, uint64(n)*page)
	g.m.check(err == nil, "munmap: %v", err)
	_, ok := g.p.Space().Bytes(addr, 1)
	g.m.check(!ok, "unmapped bytes are there")
}

func (g *job) protect() {
	x, first, n, ok := g.pick(8)
	if !ok {
		return
	}
	prot := []host.Prot{host.ProtNone, host.ProtRead, host.ProtWrite, host.ProtWrite}[g.m.rng.IntN(4)]
	for i := first; i < first+n; i++ {
		x.prot[i] = prot
	}
	err := g.p.Protect(g.th, x.addr+uint64(first)*page, uint64(n)*page, prot)
	g.m.check(err == nil, "mprotect: %v", err)
}

func (g *job) fork() {
	if len(g.m.programs) >= 5 {
		return
	}
	g.forking, g.landed = true, nil
	c, err := g.p.Fork(g.th, fmt.Sprint("program ", g.m.born))
	g.forking = false
	if err != nil {
		g.m.check(g.m.isShort(err), "fork: %v", err)
		return
	}
	to := map[*refPage]*refPage{}
	var maps []*refMap
	for _, x := range g.maps {
		y := &refMap{addr: x.addr, length: x.length, shared: x.shared, origin: x.origin, prot: slices.Clone(x.prot), pages: slices.Clone(x.pages)}
		y.alone = make([]bool, len(x.pages))
		for i, at := range x.pages {
			switch {
			case x.alone[i]:
				_, there := c.Space().Bytes(x.addr+uint64(i)*page, 1)
				_, _, mapped := c.Mapping(x.addr + uint64(i)*page)
				g.m.check(!there && !mapped, "a child has page %#x of which it was to get nothing", x.addr+uint64(i)*page)
				y.pages[i] = nil
			case at != nil && !x.shared:
				y.pages[i] = at.child()
				to[at] = y.pages[i]
			}
		}
		if slices.ContainsFunc(y.pages, func(p *refPage) bool { return p != nil }) {
			maps = append(maps, y)
		}
	}
	for _, l := range g.landed {
		if at := to[l.at]; at != nil {
			at.allow(l.off, l.old)
		}
	}
	g.m.start(c, maps)
}

func (g *job) pin() {
	x, first, n, ok := g.pick(4)
	if !ok || len(g.pins) >= 6 {
		return
	}
	h := &held{addr: x.addr + uint64(first)*page}
	err := g.p.GetUserPages(g.th, h.addr, uint64(n)*page, true, &h.pin)
	g.m.check(err == nil || g.m.isShort(err) || errors.Is(err, host.ErrPermission), "pin: %v", err)
	h.pages = slices.Clone(x.pages[first : first+h.pin.Pages()])
	g.pins = append(g.pins, h)
}

func (g *job) unpin() {
	if len(g.pins) == 0 {
		return
	}
	h := g.pins[0]
	g.pins = g.pins[1:]
	for i := range h.pages {
		addr := h.addr + uint64(i)*page
		g.m.check(g.m.Kernel.FrameUsed(h.pin.Frame(i)), "a pinned page was given away")
		if h.pages[i] == nil {
			continue
		}
		f, ok := hosttest.Walk(g.p.Tables(), g.m.Kernel.Spec().AddressBits, addr, false)
		// the device's own tables lose a page whose rights were changed meanwhile
		own := g.m.Kernel.Spec().DeviceTables == host.OwnTables
		g.m.check(ok || own || !g.readable(addr), "pinned page %#x is not there", addr)
		if ok {
			g.m.check(f == h.pin.Frame(i), "pinned page %#x has moved from %#x to %#x", addr, h.pin.Frame(i), f)
		}
	}
	h.pin.Put(g.th)
}

// readable reports whether the program has readable memory there.
func (g *job) readable(addr uint64) bool {
	for _, x := range g.maps {
		if i := int(addr-x.addr) / page; addr >= x.addr && i < len(x.pages) {
			return x.pages[i] != nil && x.prot[i] != host.ProtNone
		}
	}
	return false
}

func (g *job) lock() {
	x, first, n, ok := g.pick(6)
	if !ok {
		return
	}
	addr, size := x.addr+uint64(first)*page, uint64(n)*page
	if g.m.rng.IntN(3) > 0 {
		err := g.p.Unlock(g.th, addr, size)
		g.m.check(err == nil, "munlock: %v", err)
		return
	}
	err := g.p.Lock(g.th, addr, size)
	g.m.check(err == nil || g.m.isShort(err) || errors.Is(err, host.ErrPermission), "mlock: %v", err)
	if g.m.rng.IntN(2) == 0 {
		for i := first; i < first+n; i++ {
			x.alone[i] = true
		}
		err = g.p.DontFork(g.th, addr, size)
		g.m.check(err == nil, "madvise: %v", err)
	}
	err = g.p.Unlock(g.th, addr, size/2)
	g.m.check(err == nil, "munlock: %v", err)
}

func (g *job) migrate() {
	x, first, n, ok := g.pick(8)
	if !ok {
		return
	}
	err := g.p.Migrate(g.th, x.addr+uint64(first)*page, uint64(n)*page)
	g.m.check(err == nil || g.m.isShort(err), "migrate: %v", err)
}

// discard removes pages: private anonymous ones then read as zeros.
func (g *job) discard() {
	x, first, n, ok := g.pick(40)
	if !ok {
		return
	}
	before := slices.Clone(x.pages[first : first+n])
	if !x.shared {
		for i := first; i < first+n; i++ {
			if x.origin != nil {
				x.pages[i] = x.origin[i].child()
			} else {
				x.pages[i] = &refPage{}
			}
		}
	}
	g.discarding = true
	err := g.p.Discard(g.th, x.addr+uint64(first)*page, uint64(n)*page)
	g.discarding = false
	if errors.Is(err, host.ErrLocked) {
		copy(x.pages[first:], before)
		return
	}
	g.m.check(err == nil, "madvise: %v", err)
	for _, h := range g.pins { // the frames keep their owner, but leave these addresses
		for i := range h.pages {
			if at := h.addr + uint64(i)*page; at >= x.addr+uint64(first)*page && at < x.addr+uint64(first+n)*page {
				h.pages[i] = nil
			}
		}
	}
}

func (g *job) pageOut() {
	x, first, n, ok := g.pick(40)
	if !ok {
		return
	}
	err := g.p.PageOut(g.th, x.addr+uint64(first)*page, uint64(n)*page)
	g.m.check(err == nil, "madvise: %v", err)
}
