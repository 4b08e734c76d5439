package smmu

import "github.com/spinsim/spinsim/internal/poison"

// Translate asks for a translation. With answered true, res is the answer; else
// Client.Translated gets it later. After the answer OK the client does the
// access, and calls Done when it has reached memory.
func (s *SMMU) Translate(r *Request) (res Result, answered bool) {
	if poison.On {
		r.mayAsk()
	}
	if f := s.Hit(r.PDID, r.Addr, r.Length, r.Write); f != 0 {
		r.flight = f
		if len(r.Frames) > 0 {
			l := &s.l1.lines[s.l1.fronts[b2i(r.Write)].line]
			r.Frames[0] = l.leaf.frame(l.tag.level(), r.Addr)
		}
		if poison.On {
			r.state = flying
		}
		return OK, true
	}
	s.count.Requests++
	bank := s.BankOf(r.PDID)
	if bank < 0 {
		s.count.Denied++
		r.result, r.failed = Denied, r.Addr
		return Denied, true
	}
	b := &s.banks[bank]
	r.begin(b)
	c := s.slots.channel(r.Write)
	entered := c.waiting.first == nil && c.open() && s.advance(r, c)
	if !entered {
		s.count.Queued++
		c.waiting.push(r)
	}
	s.lines.tell()
	if entered && r.open == 0 {
		if s.instant {
			b.answer(r)
			return r.result, true
		}
		s.engine.Post(s.engine.Now()+s.spec.L1Latency, s.id, s.id, kindAnswer, 0, 0, r)
	}
	if poison.On {
		r.state = asked
	}
	return 0, false
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// advance looks up pieces of a request while the channel takes them. It reports
// whether it has looked up all.
func (s *SMMU) advance(r *Request, c *channel) bool {
	b := &s.banks[r.bank]
	for r.at < r.end {
		if b.gen != r.gen || b.sctlr&SCTLRM == 0 {
			s.count.Denied++
			r.fail(r.at, Denied)
			r.at = r.end
			break
		}
		res, done := s.quick(r, b)
		switch {
		case done && res != OK:
			r.fail(r.at, res)
		case done:
		case !c.open():
			return false
		default:
			i := s.slots.take(c, r)
			if !c.open() {
				s.l1.forget()
			}
			s.enter(i)
		}
		if r.at>>s.spec.AddressBits != 0 { // all bytes beyond the highest address are one piece
			r.at = r.end
		} else {
			r.at = min(r.end, (r.at|pageMask)+1)
		}
	}
	return true
}

// quick decides about the piece at r.at if that needs no waiting.
func (s *SMMU) quick(r *Request, b *Bank) (res Result, done bool) {
	if b.blocked() {
		if b.stalls() {
			return 0, false
		}
		return b.terminate(), true
	}
	l, level, hit := s.l1.leaf(r.bank, r.at)
	switch {
	case !hit:
		return 0, false
	case s.audit.on && s.audit.page(r, b, r.at, l, level):
		return Stale, true
	case !l.allows(r.Write) && b.stalls():
		return 0, false
	}
	s.count.L1Hits++
	if !l.allows(r.Write) {
		return s.record(b, r, r.at, level, Permission), true
	}
	r.lies(b, r.at, l.frame(level, r.at))
	return OK, true
}

// enter begins the translation of a slot, or holds it back.
func (s *SMMU) enter(i int32) {
	t := &s.slots.all[i]
	b := &s.banks[t.bank]
	if b.blocked() && b.stalls() {
		s.hold(i, b, behind)
		return
	}
	if l, level, hit := s.l1.leaf(t.bank, t.va); hit {
		s.count.L1Hits++
		s.resolve(i, OK, l, level)
		return
	}
	s.count.L1Misses++
	t.again = false
	s.engine.Post(s.engine.Now()+s.spec.L1Latency+s.spec.L2Latency, s.id, s.id, kindLookup, uint64(i), 0, nil)
}

// lookup asks the second TLB, and walks the tables if it misses.
func (s *SMMU) lookup(i int32) {
	t := &s.slots.all[i]
	if t.gen != s.banks[t.bank].gen {
		s.finish(i, Denied)
		return
	}
	if t.va>>s.spec.AddressBits != 0 {
		s.resolve(i, Fault, 0, s.walker.top)
		return
	}
	l, level, hit := s.walker.look(int(t.bank), t.va)
	if !hit {
		if !t.again {
			s.count.L2Misses++
		}
		s.miss(i)
		return
	}
	if t.again {
		s.count.Merged++
	} else {
		s.count.L2Hits++
	}
	s.l1.insert(tagOf(int(t.bank), t.va, level), l)
	s.resolve(i, OK, l, level)
}

// miss makes a slot wait for a walk: one that is under way to its page, or a
// new one.
func (s *SMMU) miss(i int32) {
	t := &s.slots.all[i]
	k := s.walker.find(t)
	if k < 0 {
		s.count.WalksFull++
		s.slots.append(&s.walker.waiting, i)
		if s.spec.WalksFull == Block {
			s.l1.forget()
			s.slots.channels[t.channel].stuck++
		}
		return
	}
	w := &s.walker.walks[k]
	if w.first >= 0 {
		s.count.Merged++
		s.slots.append(&w.list, i)
		return
	}
	s.walker.begin(w, t, s.engine.Now())
	s.slots.append(&w.list, i)
	s.count.Walks++
	s.count.MostWalks = max(s.count.MostWalks, s.walker.running)
	s.descend(w)
}

// descend sends a walk to the first table that it reads. A stale one, which
// happens only with Poison and a hit in the walk cache, ends it.
func (s *SMMU) descend(w *walk) {
	b := &s.banks[w.bank]
	s.walker.descend(w, b.tables.Root())
	if w.cached {
		s.count.WalkCacheHits++
		if s.audit.on && s.audit.table(s.slots.all[w.first].r, b, w) {
			s.over(w, Stale, 0)
			return
		}
	}
	s.access(w)
}

// access begins to read the descriptor of a walk.
func (s *SMMU) access(w *walk) {
	w.reads++
	s.count.Reads++
	index := w.va >> shift(w.level) & (1<<levelBits - 1)
	done := s.memory.Access(w.table+index*descriptor, s.spec.WalkBytes)
	s.engine.Post(done+s.spec.WalkStep, s.id, s.id, kindRead, uint64(w.index), 0, nil)
}

// read handles a descriptor that a walk has read.
func (s *SMMU) read(w *walk) {
	b := &s.banks[w.bank]
	if w.gen != b.gen {
		s.over(w, Denied, 0)
		return
	}
	if w.restart {
		s.count.Restarts++
		s.descend(w)
		return
	}
	l, end, res := s.walker.step(w, b)
	if !end {
		s.access(w)
		return
	}
	if res == OK {
		s.l1.insert(tagOf(int(w.bank), w.va, w.level), l)
	}
	s.over(w, res, l)
}

// over ends a walk. With OK its page is l.
func (s *SMMU) over(w *walk, res Result, l leaf) {
	if s.watch != nil {
		s.watch.Walked(WalkInfo{
			Bank: int(w.bank), Addr: w.va, Flow: s.slots.all[w.first].r.Flow, From: w.from, To: s.engine.Now(),
			Reads: w.reads, Cached: w.cached, Level: w.level, Result: res,
		})
	}
	for slots := s.walker.end(w); slots.first >= 0; {
		i := s.slots.pop(&slots)
		if res == OK || res == Fault {
			s.resolve(i, res, l, w.level)
		} else {
			s.finish(i, res)
		}
	}
}

// refill gives free walks to slots that wait for one.
func (s *SMMU) refill() {
	for s.walker.waiting.first >= 0 && s.walker.running < len(s.walker.walks) {
		i := s.slots.pop(&s.walker.waiting)
		t := &s.slots.all[i]
		if s.spec.WalksFull == Block {
			s.slots.channels[t.channel].stuck--
		}
		t.again = true
		s.lookup(i)
	}
}

// resolve decides about a slot that has its translation, or with Fault has none.
func (s *SMMU) resolve(i int32, res Result, l leaf, level int) {
	t := &s.slots.all[i]
	b := &s.banks[t.bank]
	if b.blocked() {
		if b.stalls() {
			s.hold(i, b, behind)
		} else {
			s.finish(i, b.terminate())
		}
		return
	}
	if res == OK {
		switch {
		case s.audit.on && s.audit.page(t.r, b, t.va, l, level):
			s.finish(i, Stale)
			return
		case l.allows(t.r.Write):
			t.r.lies(b, t.va, l.frame(level, t.va))
			s.finish(i, OK)
			return
		}
		res = Permission
	}
	if !b.stalls() {
		s.finish(i, s.record(b, t.r, t.va, level, res))
		return
	}
	b.stalled++
	s.record(b, t.r, t.va, level, res)
	s.hold(i, b, faulted)
}

// finish ends the piece of a slot, and its request if it was the last one. The
// request gets its answer at the end of this event.
func (s *SMMU) finish(i int32, res Result) {
	t := &s.slots.all[i]
	r, va := t.r, t.va
	s.slots.release(i)
	if res == Denied { // its bank has another process now, or none
		s.count.Denied++
	}
	if res != OK {
		r.fail(va, res)
	}
	r.open--
	if r.open == 0 && r.at >= r.end {
		s.answers.push(r)
	}
}

// redo looks up a request once more, before the waiting requests.
func (s *SMMU) redo(r *Request) {
	s.count.Redone++
	r.at, r.known = r.Addr, false
	c := s.slots.channel(r.Write)
	switch {
	case !c.open() || !s.advance(r, c):
		c.waiting.unshift(r)
	case r.open == 0:
		s.answers.push(r)
	}
}

// admit lets channels take the requests that wait for them.
func (s *SMMU) admit() {
	for c := range s.slots.channels[:s.spec.Channels] {
		c := &s.slots.channels[c]
		for c.waiting.first != nil && c.open() && s.advance(c.waiting.first, c) {
			r := c.waiting.pop()
			switch {
			case r.open > 0:
			case s.instant: // it needed only the first TLB
				s.answers.push(r)
			default:
				s.engine.Post(s.engine.Now()+s.spec.L1Latency, s.id, s.id, kindAnswer, 0, 0, r)
			}
		}
	}
}
