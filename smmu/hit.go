package smmu

import "github.com/spinsim/spinsim/internal/poison"

// Flight is an access that Hit has allowed, until it has Landed. It is the bank
// plus 1, and in bit 0 the epoch. 0: there is none.
type Flight uint16

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
	s.banks[f.bank].hits++
	return s.fly(f.bank)
}

// find makes the entry for an address the front f. It reports whether that is a
// hit.
func (s *SMMU) find(f *front, pdid uint16, va uint64, write bool) bool {
	bank := s.bankOf(pdid)
	if !s.instant || s.poison || bank < 0 || !s.straight(bank, write) {
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
	c := s.channelOf(write)
	return s.banks[bank].plain && c.first == nil && c.open()
}

// check panics if a front has not been forgotten.
func (s *SMMU) check(f *front, write bool) {
	if l := &s.l1.lines[f.line]; s.streams[f.bank] != uint32(f.pdid)+1 || !s.straight(int(f.bank), write) || l.tag.bank() != int(f.bank) || !l.leaf.allows(write) {
		panic("smmu: a hit of what has changed") //lint:panic a bug of this package
	}
}

// hit fills in a request that was answered by Hit.
func (s *SMMU) hit(r *Request, f Flight) {
	r.flight = f
	if len(r.Frames) > 0 {
		l := &s.l1.lines[s.l1.fronts[b2i(r.Write)].line]
		r.Frames[0] = l.leaf.frame(l.tag.level(), r.Addr)
	}
	if poison.On {
		r.state = flying
	}
}

// fly counts an access as in flight until it has Landed.
func (s *SMMU) fly(bank uint8) Flight {
	b := &s.banks[bank]
	b.inFlight[b.epoch]++
	return (Flight(bank)+1)<<1 | Flight(b.epoch)
}

// Landed ends the access of a Hit.
func (s *SMMU) Landed(f Flight) {
	b := &s.banks[f>>1-1]
	b.inFlight[f&1]--
	if poison.On && b.inFlight[f&1] < 0 {
		panic("smmu: an access has landed that is not in flight") //lint:panic a bug of the client
	}
	if b.syncing {
		s.synced(b)
	}
}
