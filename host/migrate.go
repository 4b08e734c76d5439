package host

import (
	"slices"

	"github.com/spinsim/spinsim/internal/poison"
)

// Migrate gives the pages of n bytes at addr that are in memory other frames
// (migrate_pages): their addresses and bytes stay. A page that is pinned or
// under way stays where it is.
func (p *Process) Migrate(t *Thread, addr, n uint64) error {
	if _, _, err := p.span("migrate_pages", addr, n); err != nil {
		return err
	}
	k := p.kernel
	for va := pageOf(addr); va < addr+n; va += PageBytes {
		e := p.pte(va)
		if !k.movable(e) {
			continue
		}
		f, err := k.alloc(t, p)
		if err != nil {
			return err
		}
		if now := p.pte(va); now.frame != e.frame || !k.movable(now) {
			k.putBack(f)
			continue
		}
		k.move(t, e.frame, f)
	}
	return nil
}

// movable reports whether the page of an entry can get another frame.
func (k *Kernel) movable(e pte) bool {
	if e.flags&(pteMapped|pteBusy|pteZero) != pteMapped {
		return false
	}
	g := k.memory.page(e.frame)
	return g.pins == 0 && g.held == 0 && !g.locked
}

// move gives a page another frame, which is nobody's.
func (k *Kernel) move(t *Thread, from, to frame) {
	g := k.memory.page(from)
	list := g.list
	k.delist(from)
	k.isolate(g)
	k.memory.page(to).locked = true
	k.settle(t, []frame{from})
	saved := k.lift(g)
	run(t, k.spec.CopyPage, "migrate")
	k.lay(g, saved)
	n := k.memory.page(to)
	*n = page{used: true, dirty: g.dirty, filled: g.filled, slot: g.slot, file: g.file, index: g.index, home: g.home}
	for _, at := range g.maps {
		n.add(at.p, at.va)
		e := at.p.pte(at.va)
		at.p.set(at.va, pte{to, e.flags &^ pteBusy})
	}
	if n.file != nil {
		n.file.pages[n.index] = to
	}
	k.enlist(to, max(list, onInactive))
	clear(g.maps)
	g.maps, g.home, g.file, g.slot, g.filled, g.locked = g.maps[:0], 0, nil, 0, false, false
	g.wake()
	k.unused(from)
	k.stats.Migrated++
}

// lift takes the bytes of a page that nobody can reach away, in tests.
func (k *Kernel) lift(g *page) []byte {
	if !poison.On {
		return nil
	}
	b := k.bytes(g)
	saved := slices.Clone(b)
	poison.Bytes(b)
	return saved
}

// lay puts them back.
func (k *Kernel) lay(g *page, saved []byte) {
	if poison.On {
		b := k.bytes(g)
		poison.Check(b, "a page that is moved")
		copy(b, saved)
	}
}

// bytes is where the content of a page is.
func (k *Kernel) bytes(g *page) []byte {
	if g.file != nil {
		return g.file.bytes(g.index)
	}
	at := g.maps[g.home]
	return at.p.bytes(at.va)
}
