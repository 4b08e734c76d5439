package smmu

import "github.com/spinsim/spinsim/internal/poison"

// Hit is Translate of n bytes for the usual access: it lies in one page, the
// first TLB has the page and answers at once, and nothing blocks it. The caller
// may do the access, until Landed. With 0 nothing has happened: call Translate.
//
// The entry found last stands in front of the TLB, one for reads and one for
// writes. It stays until something changes that decides about a hit: the entry,
// its bank, or whether its channel is open. Code that makes such a change calls
// forget.
func (s *SMMU) Hit(pdid uint16, va uint64, n int, write bool) Flight {
	if uint64(n-1) >= pageSize-va&pageMask {
		return 0
	}
	way := b2i(write)
	f := &s.l1.fronts[way]
	if f.level != 0 && f.pdid == pdid && va-f.base < spans[f.level&lastLevel] {
		f.used = newest
		if other := &s.l1.fronts[way^1]; other.used == newest {
			other.used = used
		}
	} else if !s.find(f, pdid, va, write) {
		return 0
	}
	if poison.On {
		s.check(f, write)
	}
	b := &s.banks[f.bank]
	b.hits++
	return b.fly()
}

// find makes the entry for an address the front f. It reports whether that is a
// hit.
func (s *SMMU) find(f *front, pdid uint16, va uint64, write bool) bool {
	bank := s.BankOf(pdid)
	if !s.instant || s.audit.on || bank < 0 || !s.straight(bank, write) {
		return false
	}
	i := s.l1.look(bank, va)
	l := &s.l1.lines[i]
	if i == 0 || !l.leaf.allows(write) {
		return false
	}
	level := max(l.tag.level(), s.l1.least) // other parts of a block may be in as pages
	f.base, f.pdid, f.line, f.bank, f.level = va&^(spans[level]-1), pdid, i, uint8(bank), uint8(level)
	return true
}

// straight reports whether nothing blocks a hit in a bank.
func (s *SMMU) straight(bank int, write bool) bool {
	c := s.slots.channel(write)
	return s.banks[bank].plain && c.waiting.first == nil && c.open()
}

// check panics if a front has not been forgotten.
func (s *SMMU) check(f *front, write bool) {
	if l := &s.l1.lines[f.line]; s.streams[f.bank] != uint32(f.pdid)+1 || !s.straight(int(f.bank), write) || l.tag.bank() != int(f.bank) || !l.leaf.allows(write) {
		panic("smmu: a hit of what has changed") //lint:panic a bug of this package
	}
}
