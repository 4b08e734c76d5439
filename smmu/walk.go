package smmu

import "github.com/spinsim/spinsim/sim"

// walk is a walk of tables for a page.
type walk struct {
	va      uint64 // of the page
	table   uint64 // the descriptor being read is in it
	from    sim.Time
	list        // slots that wait for it; empty: there is no such walk
	level   int // of the table
	reads   int
	gen     uint32 // of the bank
	bank    uint8
	cached  bool // the walk cache had the table
	restart bool // the way here has been invalidated
}

// lookup asks the second TLB, and walks the tables if it misses.
func (s *SMMU) lookup(i int32) {
	t := &s.slots[i]
	b := &s.banks[t.bank]
	if t.gen != b.gen {
		s.denied(i)
		return
	}
	if t.va>>s.spec.AddressBits != 0 {
		s.missing(i, b, s.top)
		return
	}
	bank := int(t.bank)
	for level := lastLevel; level > 0; level-- {
		data, hit := s.l2.look(bank, t.va, level)
		if !hit {
			continue
		}
		if t.again {
			s.count.Merged++
		} else {
			s.count.L2Hits++
		}
		s.l1.insert(tagOf(bank, t.va, level), leaf(data))
		s.resolve(i, leaf(data), level)
		return
	}
	if !t.again {
		s.count.L2Misses++
	}
	s.miss(i)
}

// miss makes a slot wait for a walk: one that is under way to its page, or a
// new one.
func (s *SMMU) miss(i int32) {
	t := &s.slots[i]
	free := -1
	for k, left := 0, s.walking; k < len(s.walks) && (left > 0 || free < 0); k++ {
		w := &s.walks[k]
		if w.first >= 0 {
			left--
		}
		switch {
		case w.first < 0:
			if free < 0 {
				free = k
			}
		case w.va == t.va&^pageMask && w.bank == t.bank && w.gen == t.gen:
			s.count.Merged++
			s.append(&w.list, i)
			return
		}
	}
	if free < 0 {
		s.count.WalksFull++
		s.append(&s.waiting, i)
		if s.spec.WalksFull == Block {
			s.l1.forget()
			s.channels[t.channel].stuck++
		}
		return
	}
	s.begin(free, i)
}

// begin begins walk k for a slot.
func (s *SMMU) begin(k int, i int32) {
	t := &s.slots[i]
	s.walking++
	s.count.Walks++
	s.count.MostWalks = max(s.count.MostWalks, s.walking)
	w := &s.walks[k]
	*w = walk{va: t.va &^ pageMask, from: s.engine.Now(), list: none, gen: t.gen, bank: t.bank}
	s.append(&w.list, i)
	if s.descend(w) {
		s.access(k)
		return
	}
	s.over(k, Stale, 0)
}

// descend finds the first table of a walk. It returns false if the table is
// stale, which happens only with Poison and a hit in the walk cache.
func (s *SMMU) descend(w *walk) bool {
	b := &s.banks[w.bank]
	w.level, w.table, w.cached, w.restart = s.top, b.tables.Root(), false, false
	table, hit := s.tables.look(int(w.bank), w.va, lastLevel-1)
	if !hit {
		return true
	}
	s.count.WalkCacheHits++
	w.level, w.table, w.cached = lastLevel, table, true
	return !s.poison || !s.staleTable(b, w)
}

// access begins to read the descriptor of a walk.
func (s *SMMU) access(k int) {
	w := &s.walks[k]
	w.reads++
	s.count.Reads++
	index := w.va >> shift(w.level) & (1<<levelBits - 1)
	done := s.memory.Access(w.table+index*descriptor, s.spec.WalkBytes)
	s.post(done+s.spec.WalkStep, kindRead, uint64(k), nil)
}

// read handles a descriptor that a walk has read.
func (s *SMMU) read(k int) {
	w := &s.walks[k]
	b := &s.banks[w.bank]
	if w.gen != b.gen {
		s.over(k, Denied, 0)
		return
	}
	if w.restart {
		s.count.Restarts++
		if s.descend(w) {
			s.access(k)
		} else {
			s.over(k, Stale, 0)
		}
		return
	}
	e := b.tables.Entry(w.table, w.level, w.va)
	bank := int(w.bank)
	switch {
	case e.Kind == Table && w.level < lastLevel:
		if w.level == lastLevel-1 {
			s.tables.insert(tagOf(bank, w.va, w.level), e.Addr)
		}
		w.table = e.Addr
		w.level++
		s.access(k)
	case e.Kind == Page && w.level > 0:
		if w.level == lastLevel {
			s.prefetch(b, w)
		}
		t, l := tagOf(bank, w.va, w.level), leafOf(e)
		s.l2.insert(t, uint64(l))
		s.l1.insert(t, l)
		s.over(k, OK, l)
	default:
		s.over(k, Fault, 0)
	}
}

// prefetch puts the pages behind a walk's page into the second TLB, if their
// descriptors came with its own. The farthest goes first, so that the nearest
// stays longest.
func (s *SMMU) prefetch(b *bank, w *walk) {
	place := int(w.va >> pageBits % (lineBytes / descriptor))
	for n := min(s.spec.Prefetch, lineBytes/descriptor-1-place); n > 0; n-- {
		va := w.va + uint64(n)<<pageBits
		if e := b.tables.Entry(w.table, lastLevel, va); e.Kind == Page {
			s.count.Prefetched++
			s.l2.insert(tagOf(int(w.bank), va, lastLevel), uint64(leafOf(e)))
		}
	}
}

// over ends a walk. With OK its page is l.
func (s *SMMU) over(k int, res Result, l leaf) {
	w := &s.walks[k]
	b := &s.banks[w.bank]
	if s.watch != nil {
		s.tellWalk(w, res)
	}
	slots, level := w.list, w.level
	w.list = none
	s.walking--
	for slots.first >= 0 {
		i := s.pop(&slots)
		switch res {
		case OK:
			s.resolve(i, l, level)
		case Fault:
			s.missing(i, b, level)
		case Denied:
			s.denied(i)
		default:
			s.finish(i, res)
		}
	}
}

// missing ends or stalls a slot for which there is no page.
func (s *SMMU) missing(i int32, b *bank, level int) {
	switch {
	case !s.blocked(b):
		s.fault(i, b, level, Fault)
	case b.stalls():
		s.hold(i, b)
	default:
		s.finish(i, s.terminated(b))
	}
}

// refill gives free walks to slots that wait for one.
func (s *SMMU) refill() {
	for s.waiting.first >= 0 && s.walking < len(s.walks) {
		i := s.pop(&s.waiting)
		t := &s.slots[i]
		if s.spec.WalksFull == Block {
			s.channels[t.channel].stuck--
		}
		t.again = true
		s.lookup(i)
	}
}
