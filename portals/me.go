package portals

import "github.com/spinsim/spinsim/internal/poison"

// entryState is the life of an entry.
type entryState uint8

const (
	entryWaiting  entryState = iota // a triggered append has not fired
	entryLinked                     // takes messages
	entryUnlinked                   // unlinked by itself; messages or headers may remain
	entryRemoved                    // unlinked by a triggered unlink while in use
)

// entry is a list entry or match list entry. The fields are in the order of
// their use: a long list lies in slow memory, and a delivery should touch few
// cache lines of it.
type entry struct {
	mark poison.Mark
	node node

	opts   EntryOptions
	uid    uint32
	region Region
	pt     *pt
	ct     Handle
	handle Handle

	offset   uint64 // locally managed offset
	userPtr  uint64
	spin     *Spin
	open     int32 // deliveries not finished
	headers  int32 // unexpected headers of messages delivered here
	claims   int32 // unexpected headers taken whose message is not finished
	slots    int32 // event queue slots promised for AUTO_UNLINK and AUTO_FREE
	list     List
	state    entryState
	announce bool // LINK is due when claims is 0
	unlinked bool // AUTO_UNLINK has been posted
	ptIndex  uint32

	firstOpen, lastOpen *Delivery // locally managed: deliveries in order of matching

	minFree    uint64
	matchBits  uint64
	ignoreBits uint64
	idMask     uint64
	idKey      uint64
}

// MEAppend (PtlMEAppend) appends a match list entry. An entry for the priority
// list first takes what it matches from the unexpected list: with USE_ONCE one
// header, and it is not linked; otherwise all, and it is linked.
//
// The handle of an entry that was not linked is stale unless the message it
// took is still arriving. Errors: ErrNoInit, ErrArgInvalid; ErrNoSpace with
// max_entries entries, or when the events of the headers taken have no room in
// the queue of a flow-controlled portal table entry (nothing is done then);
// ErrListTooLong with max_list_size entries linked.
func (ni *NI) MEAppend(ptIndex uint32, m *ME, list List, userPtr uint64) (Handle, error) {
	return ni.appendEntry("MEAppend", ptIndex, m, list, userPtr, KindME)
}

// LEAppend (PtlLEAppend) appends a list entry on a non-matching interface; it
// takes every request. Behaviour and errors are those of MEAppend.
func (ni *NI) LEAppend(ptIndex uint32, l *LE, list List, userPtr uint64) (Handle, error) {
	m := l.asME()
	return ni.appendEntry("LEAppend", ptIndex, &m, list, userPtr, KindLE)
}

// asME is the match list entry that accepts everything.
func (l *LE) asME() ME {
	return ME{
		Start: l.Start, Length: l.Length, IOVec: l.IOVec, CT: l.CT, UID: l.UID, Options: l.Options,
		MatchID: AnyID, IgnoreBits: ^uint64(0), Spin: l.Spin,
	}
}

func (ni *NI) appendEntry(fn string, ptIndex uint32, m *ME, list List, userPtr uint64, kind Kind) (Handle, error) {
	e, p, err := ni.newEntry(fn, ptIndex, m, list, userPtr, kind)
	if err != nil {
		return InvalidHandle, err
	}
	h := e.handle
	if err := ni.link(p, e); err != nil {
		ni.freeEntry(e)
		return InvalidHandle, err
	}
	ni.drain()
	return h, nil
}

// newEntry checks the arguments and allocates an entry that is not linked.
func (ni *NI) newEntry(fn string, ptIndex uint32, m *ME, list List, userPtr uint64, kind Kind) (*entry, *pt, error) {
	p, err := ni.ptAt(fn, ptIndex)
	if err != nil {
		return nil, nil, err
	}
	if list > OverflowList {
		return nil, nil, invalid(fn, "list %d, want priority or overflow", list)
	}
	if ni.entries.live >= ni.limits.MaxEntries {
		if _, err := ni.checkEntry(fn, m, kind); err != nil {
			return nil, nil, err
		}
		return nil, nil, exhaustedLimit(ErrNoSpace, "max_entries", ni.limits.MaxEntries)
	}
	e := ni.entryPool.get()
	if err := ni.fillEntry(fn, e, m, kind); err != nil {
		ni.entryPool.put(e)
		return nil, nil, err
	}
	e.ptIndex, e.list, e.userPtr = ptIndex, list, userPtr
	e.handle = ni.entries.addKind(e, kind)
	return e, p, nil
}

// checkEntry checks what the user filled in and builds the memory region.
func (ni *NI) checkEntry(fn string, m *ME, kind Kind) (Region, error) {
	if matching := ni.kind.Matching(); matching != (kind == KindME) {
		if matching {
			return Region{}, invalid(fn, "list entry on a matching interface")
		}
		return Region{}, invalid(fn, "match list entry on a non-matching interface")
	}
	known := optMEAll
	if kind == KindLE {
		known = optLEAll
	}
	if m.Options&^known != 0 {
		return Region{}, invalid(fn, "options %#x, unknown bits", uint32(m.Options))
	}
	if m.CT != CTNone && ni.cts.get(m.CT) == nil {
		return Region{}, invalid(fn, "counter handle %#x names nothing", uint32(m.CT))
	}
	if s := m.Spin; s != nil {
		if s.UserHdrLen > ni.limits.MaxUserHdrSize {
			return Region{}, invalid(fn, "user header of %d bytes, largest is %d", s.UserHdrLen, ni.limits.MaxUserHdrSize)
		}
		if n := uint64(len(s.InitialState)); n > ni.limits.MaxInitialState {
			return Region{}, invalid(fn, "initial state of %d bytes, largest is %d", n, ni.limits.MaxInitialState)
		}
	}
	r, err := ni.region(fn, m.Start, m.Length, m.IOVec, m.Options&OptMEIOVec != 0)
	if err != nil {
		return Region{}, err
	}
	mayBeInaccessible := ni.limits.Features&FeatureTargetBindInaccessible != 0 && m.Options&OptMEIsAccessible == 0
	if !mayBeInaccessible && !accessible(ni.proc.cfg.Memory, &r, 0, r.Length) {
		return Region{}, invalid(fn, "memory of %d bytes at %#x is not accessible", r.Length, r.Addr(0))
	}
	return r, nil
}

func (ni *NI) fillEntry(fn string, e *entry, m *ME, kind Kind) error {
	r, err := ni.checkEntry(fn, m, kind)
	if err != nil {
		return err
	}
	*e = entry{
		state: entryWaiting, opts: m.Options, region: r, minFree: m.MinFree, matchBits: m.MatchBits,
		ignoreBits: m.IgnoreBits, uid: m.UID, ct: m.CT, spin: m.Spin,
	}
	e.idMask, e.idKey = idCriterion(ni.kind, m.MatchID)
	e.node.entry = e
	return nil
}

func (ni *NI) freeEntry(e *entry) {
	ni.entries.remove(e.handle)
	e.spin, e.pt = nil, nil
	e.region.IOVec = nil
	if e.mark.Release("portals: an entry"); poison.On {
		*e = entry{mark: e.mark}
	}
	ni.entryPool.put(e)
}

// link takes matching unexpected headers and puts the entry into its list.
func (ni *NI) link(p *pt, e *entry) error {
	e.pt = p
	l := p.list(e.list)
	match := e.list == PriorityList && p.headers.nextMatch(e, nil) != nil
	if l.n >= ni.limits.MaxListSize && !(match && e.opts&OptMEUseOnce != 0) {
		return exhaustedLimit(ErrListTooLong, "max_list_size", ni.limits.MaxListSize)
	}
	if match {
		if !ni.roomForMatches(p, e) {
			return ErrNoSpace
		}
		if ni.takeMatches(p, e) {
			e.state = entryUnlinked
			if e.claims > 0 && e.opts&OptMEEventUnlinkDisable == 0 && ni.promiseSlot(p) {
				e.slots++
			}
			ni.settle(e)
			return nil
		}
	}
	e.state = entryLinked
	l.add(ni, e)
	e.announce = true
	ni.settle(e)
	return nil
}

// linkTriggered is the deferred part of TriggeredMEAppend.
func (ni *NI) linkTriggered(e *entry) {
	p := ni.pts[e.ptIndex]
	if p == nil {
		ni.freeEntry(e)
		return
	}
	if err := ni.link(p, e); err != nil {
		ni.postEvent(p.eq, &Event{
			Type: EventLink, Fail: NIDropped, List: e.list, PTIndex: p.index, UserPtr: e.userPtr, Start: e.region.Addr(0),
		})
		ni.freeEntry(e)
	}
}

// MEUnlink (PtlMEUnlink) removes a match list entry. Errors: ErrNoInit,
// ErrArgInvalid; ErrInUse while a message is being delivered to it, unexpected
// headers of its messages exist, or its triggered append has not fired.
func (ni *NI) MEUnlink(h Handle) error { return ni.unlinkEntry("MEUnlink", h, KindME) }

// LEUnlink (PtlLEUnlink) removes a list entry; errors as MEUnlink.
func (ni *NI) LEUnlink(h Handle) error { return ni.unlinkEntry("LEUnlink", h, KindLE) }

func (ni *NI) unlinkEntry(fn string, h Handle, kind Kind) error {
	if ni.dead {
		return ErrNoInit
	}
	e := ni.entries.get(h)
	if e == nil || h.Kind() != kind {
		return invalid(fn, "entry handle %#x names nothing", uint32(h))
	}
	if e.state != entryLinked || e.open > 0 || e.headers > 0 || e.claims > 0 {
		return ErrInUse
	}
	e.pt.list(e.list).remove(e)
	ni.freeEntry(e)
	return nil
}

func (ni *NI) unlinkTriggered(h Handle) {
	e := ni.entries.get(h)
	if e == nil || e.state != entryLinked {
		return
	}
	e.pt.list(e.list).remove(e)
	e.state = entryRemoved
	ni.settle(e)
}

// autoUnlink takes an entry that is used up out of its list. AUTO_UNLINK comes
// when its last message is complete.
func (ni *NI) autoUnlink(e *entry) {
	e.pt.list(e.list).remove(e)
	e.state = entryUnlinked
}

// settle posts what is due for an entry whose books changed, and frees it when
// nothing refers to it any more.
func (ni *NI) settle(e *entry) {
	e.mark.Live("portals: an entry")
	if e.claims > 0 {
		return
	}
	if e.announce {
		e.announce = false
		ni.entryEvent(e, EventLink, OptMEEventLinkDisable)
	}
	if e.open > 0 {
		return
	}
	switch e.state {
	case entryUnlinked:
		if !e.unlinked {
			e.unlinked = true
			ni.entryEvent(e, EventAutoUnlink, OptMEEventUnlinkDisable)
		}
		if e.headers > 0 {
			return
		}
		if e.list == OverflowList {
			ni.entryEvent(e, EventAutoFree, OptMEEventUnlinkDisable)
		}
		ni.freeEntry(e)
	case entryRemoved:
		if e.headers == 0 {
			ni.freeEntry(e)
		}
	case entryWaiting, entryLinked:
	}
}

func (ni *NI) entryEvent(e *entry, t EventType, disabledBy EntryOptions) {
	if e.opts&disabledBy != 0 {
		return
	}
	ev := Event{Type: t, List: e.list, PTIndex: e.pt.index, UserPtr: e.userPtr, Start: e.region.Addr(0)}
	if e.slots > 0 && t != EventLink {
		e.slots--
		ni.postPromised(e.pt.eq, &ev)
		return
	}
	ni.postEvent(e.pt.eq, &ev)
}
