package host

import (
	"slices"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
)

// Migrate moves the present pages of n bytes at addr to other frames
// (migrate_pages). Addresses and bytes stay the same. It skips pages that are
// pinned or in transfer.
func (p *Process) Migrate(t *Thread, addr, n uint64) error {
	if _, _, err := p.span("migrate_pages", addr, n); err != nil {
		return err
	}
	k := p.kernel
	for va := pageOf(addr); va < addr+n; va += PageBytes {
		e := p.pager.tables.pte(va)
		if !k.movable(e) {
			continue
		}
		f, err := k.alloc(t, &p.pager)
		if err != nil {
			return err
		}
		if now := p.pager.tables.pte(va); now.frame != e.frame || !k.movable(now) {
			k.putBack(f)
			continue
		}
		k.move(t, e.frame, f)
	}
	return nil
}

// movable reports whether the page of an entry can move to another frame.
func (k *Kernel) movable(e pte) bool {
	if e.flags&(pteMapped|pteBusy|pteZero) != pteMapped {
		return false
	}
	g := k.memory.page(e.frame)
	return g.pins == 0 && g.held == 0 && !g.locked
}

// move moves a page to another frame, which must be unused.
func (k *Kernel) move(t *Thread, from, to frame) {
	g := k.memory.page(from)
	list := g.list
	k.memory.delist(from)
	g.isolate()
	k.memory.page(to).locked = true
	k.memory.settle(t, []frame{from})
	saved := g.lift()
	k.cpu.Use(used.CopyPage)
	run(t, k.spec.CopyPage, "migrate")
	g.lay(saved)
	n := k.memory.page(to)
	*n = page{used: true, dirty: g.dirty, filled: g.filled, slot: g.slot, file: g.file, index: g.index, home: g.home}
	for _, at := range g.maps {
		n.add(at.p, at.va)
		e := at.p.tables.pte(at.va)
		at.p.tables.set(at.va, pte{to, e.flags &^ pteBusy})
	}
	if n.file != nil {
		n.file.pages[n.index] = to
	}
	k.memory.enlist(to, max(list, onInactive))
	clear(g.maps)
	g.maps, g.home, g.file, g.slot, g.filled, g.locked = g.maps[:0], 0, nil, 0, false, false
	g.wake()
	k.unused(from)
	k.stats.Migrated++
}

// lift takes away the bytes of a page that is not accessible, in tests.
func (g *page) lift() []byte {
	if !poison.On {
		return nil
	}
	b := g.bytes()
	saved := slices.Clone(b)
	poison.Bytes(b)
	return saved
}

// lay restores them.
func (g *page) lay(saved []byte) {
	if poison.On {
		b := g.bytes()
		poison.Check(b, "a page that is moved")
		copy(b, saved)
	}
}

// bytes returns the place of a page's content.
func (g *page) bytes() []byte {
	if g.file != nil {
		return g.file.bytes(g.index)
	}
	at := g.maps[g.home]
	return at.p.space.page(at.va)
}
