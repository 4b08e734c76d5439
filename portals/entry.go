package portals

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
)

func (e *entry) allowsUser(h *Header) bool {
	return (e.uid == UIDAny || e.uid == h.UID) && (e.spin == nil || e.spin.Stamp.fits(h.UID))
}

func (e *entry) allowsOp(h *Header) bool {
	need := OptMEOpPut
	switch h.Kind {
	case OpGet:
		need = OptMEOpGet
	case OpFetchAtomic, OpSwap:
		need = OptMEOpPut | OptMEOpGet
	}
	return e.opts&need == need
}

// entryState is the state of an entry.
type entryState uint8

const (
	entryWaiting  entryState = iota // a triggered append has not fired
	entryLinked                     // takes messages
	entryUnlinked                   // unlinked by itself; messages or headers may remain
	entryRemoved                    // unlinked by a triggered unlink while in use
)

// entry is a list entry or match list entry. Its fields are in the order of
// their use. A long list is in slow memory, so a message should touch few cache
// lines of it: a put without events needs the first 64 bytes only.
type entry struct {
	mark poison.Mark

	region   Region
	spin     *Spin
	opts     EntryOptions
	uid      uint32
	open     int32 // deliveries not finished
	list     List
	state    entryState
	announce bool // LINK is due when claims is 0
	unlinked bool // AUTO_UNLINK has been posted

	pt      *pt
	userPtr uint64
	offset  uint64 // locally managed offset
	node    node
	ct      Handle
	handle  Handle
	headers int32 // unexpected headers of messages delivered here
	claims  int32 // unexpected headers taken whose message is not finished
	slots   int32 // event queue slots promised for AUTO_UNLINK and AUTO_FREE
	ptIndex uint32

	firstOpen, lastOpen *Delivery // locally managed: deliveries in order of matching

	minFree    uint64
	matchBits  uint64
	ignoreBits uint64
	idMask     uint64
	idKey      uint64

	note  uint64 // Outcome.Note
	waits bool   // used once: messages have come, and it waits for another

	_ [8]byte // 256 bytes in all: every entry begins a cache line
}

// asME returns the match list entry that accepts the same requests: all.
func (l *LE) asME() ME {
	return ME{
		Start: l.Start, Length: l.Length, IOVec: l.IOVec, CT: l.CT, UID: l.UID, Options: l.Options,
		MatchID: AnyID, IgnoreBits: ^uint64(0), Spin: l.Spin,
	}
}

func (st *state) appendEntry(fn string, ptIndex uint32, m *ME, list List, userPtr uint64, kind Kind) (Handle, error) {
	e, p, err := st.newEntry(fn, ptIndex, m, list, userPtr, kind)
	if err != nil {
		return InvalidHandle, err
	}
	h := e.handle
	if err := st.link(p, e); err != nil {
		st.freeEntry(e)
		return InvalidHandle, err
	}
	st.drain()
	return h, nil
}

// newEntry checks the arguments and allocates an entry that is not linked.
func (st *state) newEntry(fn string, ptIndex uint32, m *ME, list List, userPtr uint64, kind Kind) (*entry, *pt, error) {
	p, err := st.ptAt(fn, ptIndex)
	if err != nil {
		return nil, nil, err
	}
	if list > OverflowList {
		return nil, nil, invalid(fn, "list %d, want priority or overflow", list)
	}
	st.proc.used.Add(used.Entry)
	if st.entries.live >= st.limits.MaxEntries {
		if _, err := st.checkEntry(fn, m, kind); err != nil {
			return nil, nil, err
		}
		return nil, nil, exhaustedLimit(ErrNoSpace, "max_entries", st.limits.MaxEntries)
	}
	e := st.entryPool.get()
	if err := st.fillEntry(fn, e, m, kind); err != nil {
		st.entryPool.put(e)
		return nil, nil, err
	}
	e.ptIndex, e.list, e.userPtr = ptIndex, list, userPtr
	e.handle = st.entries.addKind(e, kind)
	return e, p, nil
}

// checkEntry checks what the user filled in and builds the memory region.
func (st *state) checkEntry(fn string, m *ME, kind Kind) (Region, error) {
	if matching := st.kind.Matching(); matching != (kind == KindME) {
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
	if m.CT != CTNone && st.counters.all.get(m.CT) == nil {
		return Region{}, invalid(fn, "counter handle %#x names nothing", uint32(m.CT))
	}
	if err := st.checkSpin(fn, m); err != nil {
		return Region{}, err
	}
	r, err := st.region(fn, m.Start, m.Length, m.IOVec, m.Options&OptMEIOVec != 0)
	if err != nil {
		return Region{}, err
	}
	mayBeInaccessible := st.limits.Features&FeatureTargetBindInaccessible != 0 && m.Options&OptMEIsAccessible == 0
	if !mayBeInaccessible && !accessible(st.memory, &r, 0, r.Length, m.Options&OptMEOpPut != 0) {
		return Region{}, invalid(fn, "memory of %d bytes at %#x is not accessible", r.Length, r.Addr(0))
	}
	return r, nil
}

// checkSpin checks the handlers of an entry.
func (st *state) checkSpin(fn string, m *ME) error {
	s, vector := m.Spin, m.Options&OptMEHandlerIOVec != 0
	if s == nil {
		if vector {
			return invalid(fn, "HANDLER_IOVEC without handlers")
		}
		return nil
	}
	st.proc.used.Add(used.Module)
	if s.UserHdrLen > st.limits.MaxUserHdrSize {
		return invalid(fn, "user header of %d bytes, largest is %d", s.UserHdrLen, st.limits.MaxUserHdrSize)
	}
	if int(s.Stamp.Shift)+int(s.Stamp.Bits) > 64 {
		return invalid(fn, "user id in %d bits from %d on, match bits have 64", s.Stamp.Bits, s.Stamp.Shift)
	}
	if unit := st.limits.MinFragmentationLimit; unit > 1 && s.UserHdrLen%unit != 0 {
		return invalid(fn, "user header of %d bytes, want a multiple of %d (min_fragmentation_limit)", s.UserHdrLen, unit)
	}
	if n := uint64(len(s.InitialState)); n > st.limits.MaxInitialState {
		return invalid(fn, "initial state of %d bytes, largest is %d", n, st.limits.MaxInitialState)
	}
	h, err := st.region(fn, s.HostMem.Start, s.HostMem.Length, s.HostMem.IOVec, vector)
	if err != nil {
		return fmt.Errorf("%w, of the handlers' host memory (HANDLER_IOVEC)", err)
	}
	if h.Length != s.HostMem.Length {
		return invalid(fn, "host memory of the handlers of %d bytes, its vectors have %d", s.HostMem.Length, h.Length)
	}
	return nil
}

func (st *state) fillEntry(fn string, e *entry, m *ME, kind Kind) error {
	r, err := st.checkEntry(fn, m, kind)
	if err != nil {
		return err
	}
	*e = entry{} // a literal with the values would need the stack of another entry
	e.state, e.opts, e.region, e.minFree, e.matchBits = entryWaiting, m.Options, r, m.MinFree, m.MatchBits
	e.ignoreBits, e.uid, e.ct, e.spin = m.IgnoreBits, m.UID, m.CT, m.Spin
	e.idMask, e.idKey = idCriterion(st.kind, m.MatchID)
	e.node.entry = e
	return nil
}

func (st *state) freeEntry(e *entry) {
	st.entries.remove(e.handle)
	e.spin, e.pt = nil, nil
	e.region.IOVec = nil
	if e.mark.Release("portals: an entry"); poison.On {
		*e = entry{mark: e.mark}
	}
	st.entryPool.put(e)
}

// link takes matching unexpected headers, and then puts the entry into its
// list.
func (st *state) link(p *pt, e *entry) error {
	e.pt = p
	l := p.list(e.list)
	match := e.list == PriorityList && p.headers.nextMatch(e, nil) != nil
	if l.n >= st.limits.MaxListSize && !(match && e.opts&OptMEUseOnce != 0) {
		return exhaustedLimit(ErrListTooLong, "max_list_size", st.limits.MaxListSize)
	}
	if match {
		if !st.roomForMatches(p, e) {
			return ErrNoSpace
		}
		if st.takeMatches(p, e) {
			e.state = entryUnlinked
			if e.claims > 0 && e.opts&OptMEEventUnlinkDisable == 0 && st.queues.promise(p) {
				e.slots++
			}
			st.settle(e)
			return nil
		}
	}
	e.state = entryLinked
	l.add(e)
	e.announce = true
	st.settle(e)
	return nil
}

// linkTriggered is the deferred part of TriggeredMEAppend.
func (st *state) linkTriggered(e *entry) {
	p := st.pts[e.ptIndex]
	if p == nil {
		st.freeEntry(e)
		return
	}
	if err := st.link(p, e); err != nil {
		st.queues.post(p.eq, &Event{
			Type: EventLink, Fail: NIDropped, List: e.list, PTIndex: p.index, UserPtr: e.userPtr, Start: e.region.Addr(0),
		})
		st.freeEntry(e)
	}
}

func (st *state) unlinkEntry(fn string, h Handle, kind Kind) error {
	if st.dead {
		return ErrNoInit
	}
	e := st.entries.get(h)
	if e == nil || h.Kind() != kind {
		return invalid(fn, "entry handle %#x names nothing", uint32(h))
	}
	if e.state != entryLinked || e.open > 0 || e.headers > 0 || e.claims > 0 {
		return ErrInUse
	}
	e.pt.list(e.list).remove(e)
	st.freeEntry(e)
	return nil
}

func (st *state) unlinkTriggered(h Handle) {
	e := st.entries.get(h)
	if e == nil || e.state != entryLinked {
		return
	}
	e.pt.list(e.list).remove(e)
	e.state = entryRemoved
	st.settle(e)
}

// settle posts pending events of an entry whose counts have changed. It frees
// the entry when no message or header refers to it.
func (st *state) settle(e *entry) {
	e.mark.Live("portals: an entry")
	if e.state == entryLinked && !e.announce || e.claims > 0 {
		return
	}
	if e.announce {
		e.announce = false
		st.entryEvent(e, EventLink, OptMEEventLinkDisable)
	}
	if e.open > 0 {
		return
	}
	switch e.state {
	case entryUnlinked:
		if !e.unlinked {
			e.unlinked = true
			st.entryEvent(e, EventAutoUnlink, OptMEEventUnlinkDisable)
		}
		if e.headers > 0 {
			return
		}
		if e.list == OverflowList {
			st.entryEvent(e, EventAutoFree, OptMEEventUnlinkDisable)
		}
		st.freeEntry(e)
	case entryRemoved:
		if e.headers == 0 {
			st.freeEntry(e)
		}
	case entryWaiting, entryLinked:
	}
}

func (st *state) entryEvent(e *entry, t EventType, disabledBy EntryOptions) {
	if e.opts&disabledBy != 0 {
		return
	}
	ev := Event{Type: t, List: e.list, PTIndex: e.pt.index, UserPtr: e.userPtr, Start: e.region.Addr(0)}
	if e.slots > 0 && t != EventLink {
		e.slots--
		st.queues.postPromised(e.pt.eq, &ev)
		return
	}
	st.queues.post(e.pt.eq, &ev)
}

// autoUnlink takes a used-up entry out of its list. AUTO_UNLINK follows when
// its last message is complete.
func (e *entry) autoUnlink() {
	e.pt.list(e.list).remove(e)
	e.state = entryUnlinked
}
