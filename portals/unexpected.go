package portals

import (
	"github.com/spinsim/spinsim/internal/poison"
)

func (st *state) search(fn string, ptIndex uint32, m *ME, op SearchOp, userPtr uint64, kind Kind) error {
	p, err := st.ptAt(fn, ptIndex)
	if err != nil {
		return err
	}
	if op > SearchDelete {
		return invalid(fn, "search operation %d", op)
	}
	e := st.entryPool.get()
	defer st.entryPool.put(e)
	if err := st.fillEntry(fn, e, m, kind); err != nil {
		return err
	}
	e.userPtr = userPtr
	if op == SearchDelete && !st.roomForMatches(p, e) {
		return ErrNoSpace
	}
	once := e.opts&OptMEUseOnce != 0
	found := false
	for u := p.headers.nextMatch(e, nil); u != nil && (!found || !once); {
		next := p.headers.nextMatch(e, u)
		found = true
		if op == SearchDelete {
			st.claimHeader(p, u, e, nil, u.hdr.Kind.overflowEvent(), true)
		} else {
			st.claimHeader(p, u, e, nil, EventSearch, false)
		}
		u = next
	}
	if !found && e.opts&OptMEEventOverDisable == 0 {
		st.queues.post(p.eq, &Event{Type: EventSearch, Fail: NINoMatch, PTIndex: p.index, UserPtr: userPtr})
	}
	if !found || !once {
		st.counters.countEntry(e.opts, e.ct, OptMEEventCTOverflow, NINoMatch, 0)
	}
	st.drain()
	return nil
}

// unexpected is the header of a message that was delivered into the overflow
// list (Portals 4.x §3.11, §3.12). It enters the unexpected list when it is
// matched, and can be taken from then on. The events of taking it wait until
// the message is complete.
type unexpected struct {
	mark    poison.Mark
	node    node
	anyID   node // its place in the index without the initiator
	hdr     Header
	entry   *entry // in the overflow list
	start   uint64 // where the data lies
	mlength uint64
	fail    FailType
	done    bool // the message is complete
	listed  bool // not taken yet
	first   *claim
	last    *claim
}

// claim is the taker of a header whose message is not yet complete.
type claim struct {
	mark    poison.Mark
	opts    EntryOptions
	ct      Handle
	userPtr uint64
	typ     EventType
	entry   *entry // appended entry, nil for a search
	slot    bool   // an event queue slot is promised
	next    *claim
}

// headerList is the unexpected list of a portal table entry. It finds headers
// by bits and initiator, and by bits alone, as MPI needs.
type headerList struct {
	chain
	exact index
	anyID index
}

func (l *headerList) add(u *unexpected) {
	l.push(&u.node)
	l.exact.add(u.hdr.MatchBits, initiatorKey(&u.hdr), &u.node)
	l.anyID.add(u.hdr.MatchBits, 0, &u.anyID)
}

func (l *headerList) remove(u *unexpected) {
	l.cut(&u.node)
	l.exact.remove(u.hdr.MatchBits, initiatorKey(&u.hdr), &u.node)
	l.anyID.remove(u.hdr.MatchBits, 0, &u.anyID)
}

// first returns the oldest header that may match the entry.
func (l *headerList) first(e *entry) *unexpected {
	n := l.head
	if e.ignoreBits == 0 {
		switch e.idMask {
		case ^uint64(0):
			n = l.exact.find(e.matchBits, e.idKey).oldest()
		case 0:
			n = l.anyID.find(e.matchBits, 0).oldest()
		}
	}
	if n == nil {
		return nil
	}
	return n.header
}

// next returns the header after u that may match the entry.
func (u *unexpected) next(e *entry) *unexpected {
	n := u.node.next
	if e.ignoreBits == 0 {
		switch e.idMask {
		case ^uint64(0):
			n = u.node.gnext
		case 0:
			n = u.anyID.gnext
		}
	}
	if n == nil {
		return nil
	}
	return n.header
}

func (st *state) newHeader(p *pt, e *entry, h *Header, off, mlength uint64) *unexpected {
	u := st.headerPool.get()
	*u = unexpected{hdr: *h, entry: e, start: e.region.Addr(off), mlength: mlength, listed: true}
	u.node.header, u.anyID.header = u, u
	if p.headers == nil {
		p.headers = new(headerList)
	}
	p.headers.add(u)
	e.headers++
	st.unexpectedCount++
	if st.witness.tracer != nil {
		st.witness.trace(TraceRecord{What: TraceHeaderQueued, PT: p.index, Header: &u.hdr})
	}
	return u
}

// matchesHeader compares an appended or searching entry with an unexpected
// header. The overflow entry has already checked user and operation of the
// message, so they are not checked again (Portals 4.x §3.12.2).
func (e *entry) matchesHeader(u *unexpected) bool {
	return e.accepts(&u.hdr, initiatorKey(&u.hdr))
}

// nextMatch returns the first header that matches the entry, after the given
// one, or from the beginning if that is nil.
func (l *headerList) nextMatch(e *entry, after *unexpected) *unexpected {
	if l == nil {
		return nil
	}
	var u *unexpected
	if after == nil {
		u = l.first(e)
	} else {
		u = after.next(e)
	}
	for u != nil && !e.matchesHeader(u) {
		u = u.next(e)
	}
	if u != nil {
		u.mark.Live("portals: an unexpected header")
	}
	return u
}

// roomForMatches reports whether the events of the headers that e would take
// fit into the queue of a flow-controlled portal table entry.
func (st *state) roomForMatches(p *pt, e *entry) bool {
	q := st.queues.all.get(p.eq)
	if p.opts&OptPTFlowCtrl == 0 || q == nil {
		return true
	}
	need := 0
	if e.opts&OptMEEventUnlinkDisable == 0 && (e.opts&OptMEUseOnce != 0 || e.opts&OptMELocalIncUHRLength != 0) {
		need++
	}
	matches := 0
	for u := p.headers.nextMatch(e, nil); u != nil; u = p.headers.nextMatch(e, u) {
		matches++
		if e.opts&OptMEUseOnce != 0 {
			break
		}
	}
	if e.opts&(OptMEEventOverDisable|OptMEEventSuccessDisable) == 0 {
		need += matches
	}
	return matches == 0 || q.room(need)
}

// takeMatches delivers the unexpected headers that match a new priority entry.
// It reports whether that has used the entry up.
func (st *state) takeMatches(p *pt, e *entry) bool {
	u := p.headers.nextMatch(e, nil)
	for u != nil {
		next := p.headers.nextMatch(e, u)
		rlength := u.hdr.RLength
		st.claimHeader(p, u, e, e, u.hdr.Kind.overflowEvent(), true)
		if e.opts&OptMEUseOnce != 0 {
			return true
		}
		if e.opts&OptMEManageLocal != 0 && e.opts&OptMELocalIncUHRLength != 0 {
			e.offset += min(rlength, e.region.Length-e.offset)
			if e.usedUp() {
				return true
			}
			// The larger offset may leave no room for an earlier match.
			if e.opts&OptMENoTruncate != 0 {
				for next != nil && !e.matchesHeader(next) {
					next = p.headers.nextMatch(e, next)
				}
			}
		}
		u = next
	}
	return false
}

// usedUp reports whether a locally managed entry has too little memory left.
func (e *entry) usedUp() bool {
	return e.opts&OptMEManageLocal != 0 && e.region.Length-e.offset < e.minFree
}

// claimHeader announces a header to its taker, now or when its message is
// complete. criteria has the options; appended is nil for a search. With take
// the header leaves the list.
func (st *state) claimHeader(p *pt, u *unexpected, criteria, appended *entry, typ EventType, take bool) {
	if take {
		p.headers.remove(u)
		u.listed = false
		if st.witness.tracer != nil {
			st.witness.trace(TraceRecord{What: TraceHeaderTaken, PT: p.index, Header: &u.hdr})
		}
	}
	c := claim{opts: criteria.opts, ct: criteria.ct, userPtr: criteria.userPtr, typ: typ, entry: appended}
	if u.done {
		st.announce(p, u, &c)
		st.dropHeader(u)
		return
	}
	c.slot = c.wantsEvent(NIOK) && st.queues.promise(p)
	if appended != nil {
		appended.claims++
	}
	w := st.claimPool.get()
	*w = c
	if u.first == nil {
		u.first = w
	} else {
		u.last.next = w
	}
	u.last = w
}

func (c *claim) wantsEvent(fail FailType) bool {
	return c.opts&OptMEEventOverDisable == 0 && (fail != NIOK || c.opts&OptMEEventSuccessDisable == 0)
}

// announce posts and counts the overflow or search event of a complete header.
func (st *state) announce(p *pt, u *unexpected, c *claim) {
	u.mark.Live("portals: an unexpected header")
	c.mark.Live("portals: a claim")
	if c.wantsEvent(u.fail) {
		ev := eventOf(&u.hdr, c.typ)
		ev.Fail, ev.List, ev.PTIndex = u.fail, OverflowList, p.index
		ev.Start, ev.MLength, ev.UserPtr = u.start, u.mlength, c.userPtr
		if c.slot {
			st.queues.postPromised(p.eq, &ev)
		} else {
			st.queues.post(p.eq, &ev)
		}
	} else if c.slot {
		st.queues.unpromise(p.eq, 1)
	}
	st.counters.countEntry(c.opts, c.ct, OptMEEventCTOverflow, u.fail, u.mlength)
}

// headerDone completes the message of a header and announces it to waiting
// takers.
func (st *state) headerDone(p *pt, u *unexpected, fail FailType, mlength uint64) {
	u.mark.Live("portals: an unexpected header")
	u.done, u.fail, u.mlength = true, fail, mlength
	for c := u.first; c != nil; {
		next := c.next
		st.announce(p, u, c)
		if c.entry != nil {
			c.entry.claims--
			st.settle(c.entry)
		}
		*c = claim{mark: c.mark}
		c.mark.Release("portals: a claim")
		st.claimPool.put(c)
		c = next
	}
	u.first, u.last = nil, nil
	st.dropHeader(u)
}

// dropHeader frees a header that was taken and whose message is complete.
func (st *state) dropHeader(u *unexpected) {
	if u.listed || !u.done {
		return
	}
	e := u.entry
	u.entry = nil
	st.unexpectedCount--
	if u.mark.Release("portals: an unexpected header"); poison.On {
		*u = unexpected{mark: u.mark}
	}
	st.headerPool.put(u)
	e.headers--
	st.settle(e)
}
