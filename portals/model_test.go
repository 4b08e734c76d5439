package portals

import (
	"encoding/binary"
	"sort"
)

// The model is Portals 4's target side written as plainly as possible: slices
// walked from the front, messages delivered at once, no pools, no indices. It
// shares no code with the package beyond the types of the API.

type modelEntry struct {
	me       ME
	list     List
	user     uint64
	off      uint64
	handle   Handle
	headers  int
	linked   bool
	unlinked bool // by itself, not free yet
	waiting  bool // triggered append
	removed  bool // triggered unlink while in use
}

type modelHeader struct {
	h     Header
	entry *modelEntry
	start uint64
	mlen  uint64
}

type modelTrig struct {
	threshold uint64
	seq       int
	run       func()
	cancel    func()
}

type modelCT struct {
	value CTEvent
	trigs []modelTrig
}

type model struct {
	limits   Limits
	flow     bool
	disabled bool
	prio     []*modelEntry
	over     []*modelEntry
	heads    []*modelHeader
	alive    map[Handle]*modelEntry
	entries  int
	cts      []*modelCT
	ctOf     map[Handle]*modelCT
	pending  int
	ready    []func()
	seq      int
	events   []Event
	answers  []Header
	status   [srCount]uint64
	mem      []byte
}

func (m *model) criteria(e *modelEntry, h *Header) bool {
	id := e.me.MatchID
	if (h.MatchBits^e.me.MatchBits)&^e.me.IgnoreBits != 0 {
		return false
	}
	if id.NID != NIDAny && id.NID != h.Initiator.NID || id.PID != PIDAny && id.PID != h.Initiator.PID {
		return false
	}
	if e.me.Options&OptMENoTruncate == 0 {
		return true
	}
	off := h.RemoteOffset
	if e.me.Options&OptMEManageLocal != 0 {
		off = e.off
	}
	return off <= e.me.Length && h.RLength <= e.me.Length-off
}

func (m *model) allowed(e *modelEntry, h *Header) (user, op bool) {
	user = e.me.UID == UIDAny || e.me.UID == h.UID
	need := OptMEOpPut
	switch h.Kind {
	case OpGet:
		need = OptMEOpGet
	case OpFetchAtomic:
		need = OptMEOpGet | OptMEOpPut
	}
	return user, e.me.Options&need == need
}

func (m *model) post(ev Event) {
	ev.Initiator.Rank = RankAny
	m.events = append(m.events, ev)
}

func (m *model) bump(c Handle, s, f uint64) {
	ct := m.ctOf[c]
	if ct == nil {
		return
	}
	m.set(ct, CTEvent{ct.value.Success + s, ct.value.Failure + f})
}

func (m *model) set(c *modelCT, v CTEvent) {
	c.value = v
	sort.SliceStable(c.trigs, func(i, j int) bool {
		a, b := c.trigs[i], c.trigs[j]
		return a.threshold < b.threshold || a.threshold == b.threshold && a.seq < b.seq
	})
	for len(c.trigs) > 0 && c.trigs[0].threshold <= v.Success+v.Failure {
		m.ready = append(m.ready, c.trigs[0].run)
		c.trigs = c.trigs[1:]
		m.pending--
	}
}

func (m *model) settle() {
	for len(m.ready) > 0 {
		run := m.ready[0]
		m.ready = m.ready[1:]
		run()
	}
}

func (m *model) trigger(c Handle, threshold uint64, run, cancel func()) {
	ct := m.ctOf[c]
	m.seq++
	m.pending++
	ct.trigs = append(ct.trigs, modelTrig{threshold, m.seq, run, cancel})
	if ct.value.Success+ct.value.Failure >= threshold {
		// Earlier ones have fired already, so this is the only one that is due.
		ct.trigs = ct.trigs[:len(ct.trigs)-1]
		m.pending--
		m.ready = append(m.ready, run)
	}
	m.settle()
}

func (m *model) entryEvent(e *modelEntry, t EventType, off EntryOptions) {
	if e.me.Options&off == 0 {
		m.events = append(m.events, Event{Type: t, List: e.list, UserPtr: e.user, Start: e.me.Start})
	}
}

func without[T comparable](s []T, x T) []T {
	for i, v := range s {
		if v == x {
			return append(s[:i:i], s[i+1:]...)
		}
	}
	return s
}

func (m *model) release(e *modelEntry) {
	delete(m.alive, e.handle)
	m.entries--
}

// used posts what follows when an entry has unlinked itself.
func (m *model) used(e *modelEntry) {
	m.prio, m.over = without(m.prio, e), without(m.over, e)
	e.linked, e.unlinked = false, true
	m.entryEvent(e, EventAutoUnlink, OptMEEventUnlinkDisable)
	m.free(e)
}

func (m *model) free(e *modelEntry) {
	if e.headers > 0 {
		return
	}
	if e.unlinked {
		if e.list == OverflowList {
			m.entryEvent(e, EventAutoFree, OptMEEventUnlinkDisable)
		}
		m.release(e)
	} else if e.removed {
		m.release(e)
	}
}

func (m *model) countEntry(o EntryOptions, c Handle, which EntryOptions, n uint64) {
	if o&which == 0 {
		return
	}
	if o&OptMEEventCTBytes == 0 {
		n = 1
	}
	m.bump(c, n, 0)
}

func (m *model) eventOf(h *Header, t EventType) Event {
	ev := Event{
		Type: t, HdrData: h.HdrData, MatchBits: h.MatchBits, RLength: h.RLength, RemoteOffset: h.RemoteOffset,
		UID: h.UID, Initiator: h.Initiator,
	}
	if h.Kind == OpAtomic || h.Kind == OpFetchAtomic {
		ev.AtomicOp, ev.AtomicType = h.Op, h.Type
	}
	return ev
}

func (m *model) headerMatches(e *modelEntry, u *modelHeader) bool { return m.criteria(e, &u.h) }

func (m *model) overflowEvent(e *modelEntry, u *modelHeader, t EventType) {
	if e.me.Options&(OptMEEventOverDisable|OptMEEventSuccessDisable) == 0 {
		ev := m.eventOf(&u.h, t)
		ev.List, ev.Start, ev.MLength, ev.UserPtr = OverflowList, u.start, u.mlen, e.user
		m.post(ev)
	}
	m.countEntry(e.me.Options, e.me.CT, OptMEEventCTOverflow, u.mlen)
}

func (m *model) drop(u *modelHeader) {
	m.heads = without(m.heads, u)
	u.entry.headers--
	m.free(u.entry)
}

var modelOverflow = map[OpKind]EventType{
	OpPut: EventPutOverflow, OpGet: EventGetOverflow, OpAtomic: EventAtomicOverflow, OpFetchAtomic: EventFetchAtomicOverflow,
}

// append links an entry that has its place in the limits; false: list too long.
func (m *model) append(e *modelEntry) bool {
	list := &m.prio
	if e.list == OverflowList {
		list = &m.over
	}
	once := e.me.Options&OptMEUseOnce != 0
	var match []*modelHeader
	if e.list == PriorityList {
		for _, u := range m.heads {
			if m.headerMatches(e, u) {
				match = append(match, u)
			}
		}
	}
	if len(*list) >= m.limits.MaxListSize && !(once && len(match) > 0) {
		return false
	}
	e.waiting = false
	for _, u := range match {
		if !m.headerMatches(e, u) {
			continue // the local offset has advanced
		}
		n := u.h.RLength
		m.overflowEvent(e, u, modelOverflow[u.h.Kind])
		m.drop(u)
		if once {
			m.used(e)
			return true
		}
		local := OptMEManageLocal | OptMELocalIncUHRLength
		if e.me.Options&local == local {
			e.off = min(e.off+n, e.me.Length)
			if e.me.Length-e.off < e.me.MinFree {
				m.used(e)
				return true
			}
		}
	}
	*list = append(*list, e)
	e.linked = true
	m.entryEvent(e, EventLink, OptMEEventLinkDisable)
	return true
}

func (m *model) search(e *modelEntry, op SearchOp) {
	once := e.me.Options&OptMEUseOnce != 0
	found := false
	for _, u := range append([]*modelHeader(nil), m.heads...) {
		if !m.headerMatches(e, u) {
			continue
		}
		found = true
		if op == SearchOnly {
			m.overflowEvent(e, u, EventSearch)
		} else {
			m.overflowEvent(e, u, modelOverflow[u.h.Kind])
			m.drop(u)
		}
		if once {
			break
		}
	}
	if !found && e.me.Options&OptMEEventOverDisable == 0 {
		m.events = append(m.events, Event{Type: EventSearch, Fail: NINoMatch, UserPtr: e.user})
	}
	if (!found || !once) && e.me.Options&OptMEEventCTOverflow != 0 {
		m.bump(e.me.CT, 0, 1)
	}
}

func (m *model) answer(h *Header, fail FailType, list List, mlen, off uint64) {
	if h.Kind == OpPut && h.AckReq == NoAck || h.Kind == OpAtomic && h.AckReq == NoAck {
		return
	}
	a := Header{Kind: OpAck, Fail: fail, List: list, MLength: mlen, RemoteOffset: off, Ref: h.Ref}
	if h.Kind == OpGet || h.Kind == OpFetchAtomic {
		a.Kind = OpReply
	}
	m.answers = append(m.answers, a)
}

func (m *model) refuse(h *Header, fail FailType, register StatusRegister) {
	m.status[register]++
	m.answer(h, fail, PriorityList, 0, 0)
}

// exhausted drops or disables.
func (m *model) exhausted(h *Header, o EntryOptions) {
	if !m.flow {
		m.refuse(h, NIDropped, SRDropCount)
		return
	}
	m.disabled = true
	if o&OptMEEventFlowCtrlDisable == 0 {
		m.events = append(m.events, Event{Type: EventPTDisabled, Fail: NIPTDisabled})
	}
	m.refuse(h, NIPTDisabled, SRDropCount)
}

// receive delivers a request whole.
func (m *model) receive(h *Header, data []byte) {
	if m.disabled {
		m.refuse(h, NIPTDisabled, SRDropCount)
		return
	}
	var e *modelEntry
	for _, c := range append(append([]*modelEntry(nil), m.prio...), m.over...) {
		if m.criteria(c, h) {
			e = c
			break
		}
	}
	if e == nil {
		m.exhausted(h, 0)
		return
	}
	if user, op := m.allowed(e, h); !user {
		m.refuse(h, NIPermViolation, SRPermissionViolations)
		return
	} else if !op {
		m.refuse(h, NIOpViolation, SROperationViolations)
		return
	}
	o := e.me.Options
	leaves := e.list == OverflowList && o&OptMEUnexpectedHdrDisable == 0
	if leaves && len(m.heads) >= m.limits.MaxUnexpectedHeaders {
		m.exhausted(h, o)
		return
	}
	m.accept(e, h, data, leaves)
}

// accept delivers a request into its entry.
func (m *model) accept(e *modelEntry, h *Header, data []byte, leaves bool) {
	o := e.me.Options
	off := h.RemoteOffset
	if o&OptMEManageLocal != 0 {
		off = e.off
	}
	n := uint64(0)
	if off < e.me.Length {
		n = min(h.RLength, e.me.Length-off)
	}
	if h.Kind == OpAtomic || h.Kind == OpFetchAtomic {
		n -= n % 4
	}
	start := e.me.Start + min(off, e.me.Length)
	m.land(h, start, data[:min(n, uint64(len(data)))])
	unlink := o&OptMEUseOnce != 0
	if o&OptMEManageLocal != 0 {
		e.off += n
		unlink = unlink || e.me.Length-e.off < e.me.MinFree
	}
	if o&(OptMEEventCommDisable|OptMEEventSuccessDisable) == 0 {
		ev := m.eventOf(h, modelOverflow[h.Kind]-1)
		ev.List, ev.Start, ev.MLength, ev.UserPtr = e.list, start, n, e.user
		m.post(ev)
	}
	m.countEntry(o, e.me.CT, OptMEEventCTComm, n)
	if leaves {
		m.heads = append(m.heads, &modelHeader{h: *h, entry: e, start: start, mlen: n})
		e.headers++
	}
	if unlink {
		m.used(e)
	}
	m.answer(h, NIOK, e.list, n, off)
}

// land writes a put and adds an atomic sum of 32-bit integers.
func (m *model) land(h *Header, start uint64, data []byte) {
	switch h.Kind {
	case OpPut:
		copy(m.mem[start:], data)
	case OpAtomic, OpFetchAtomic:
		for i := uint64(0); i < uint64(len(data)); i += 4 {
			v := binary.LittleEndian.Uint32(m.mem[start+i:]) + binary.LittleEndian.Uint32(data[i:])
			binary.LittleEndian.PutUint32(m.mem[start+i:], v)
		}
	}
}
