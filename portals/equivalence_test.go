package portals

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var equivalenceOps = flag.Int("equivalence.ops", 60_000, "random operations of TestEquivalence per variant; the promise is a million")

// duel runs the same operations on an interface and on the model.
type duel struct {
	t     *testing.T
	rng   *rand.Rand
	ni    *NI
	m     *model
	mem   flatMemory
	q     Handle
	cts   []Handle
	known []Handle // of entries, some stale
	user  uint64

	examined Handle // last entry the explanation of the current request named
	verdict  Verdict
	decided  bool
}

// Trace checks that the explanation of a request, a walk over the lists, ends
// at the entry the matcher found.
func (d *duel) Trace(_ *NI, r *TraceRecord) {
	switch r.What {
	case TraceRequest:
		d.decided = false
	case TraceExamined:
		require.False(d.t, d.decided, "the walk went on after the entry that decides")
		d.examined, d.verdict, d.decided = r.Handle, r.Verdict, r.Verdict >= VerdictUser
	case TraceMatched:
		require.True(d.t, d.decided)
		require.Equal(d.t, r.Handle, d.examined)
		require.Equal(d.t, VerdictMatch, d.verdict)
	case TraceRefused:
		switch r.Delivery.Fail {
		case NIPermViolation:
			require.Equal(d.t, VerdictUser, d.verdict)
		case NIOpViolation:
			require.Equal(d.t, VerdictOp, d.verdict)
		case NIDropped:
			require.True(d.t, !d.decided || d.verdict == VerdictMatch && len(d.m.heads) == d.m.limits.MaxUnexpectedHeaders)
		}
	}
}

const duelMemory = 4096

func newDuel(t *testing.T, seed uint64, flow bool) *duel {
	limits := deviceLimits
	limits.MaxEntries, limits.MaxListSize, limits.MaxUnexpectedHeaders, limits.MaxTriggeredOps = 60, 30, 25, 20
	if seed%2 == 1 {
		limits.MaxEntries, limits.MaxListSize, limits.MaxUnexpectedHeaders = 700, 400, 300
	}
	d := &duel{t: t, rng: rand.New(rand.NewPCG(seed, 1)), mem: make(flatMemory, duelMemory)}
	cfg := NIConfig{NID: 9, Options: OptNIMatching | OptNIPhysical, Device: limits, Memory: d.mem}
	if flow {
		cfg.Tracer = d
	}
	ni, _, err := NewNI(cfg)
	require.NoError(t, err)
	d.ni = ni
	d.m = &model{limits: limits, flow: flow, alive: map[Handle]*modelEntry{}, ctOf: map[Handle]*modelCT{}, mem: make([]byte, duelMemory)}
	d.q, err = ni.EQAlloc(4096)
	require.NoError(t, err)
	var opts PTOptions
	if flow {
		opts = OptPTFlowCtrl
	}
	_, err = ni.PTAlloc(opts, d.q, 0)
	require.NoError(t, err)
	for range 4 {
		h, err := ni.CTAlloc()
		require.NoError(t, err)
		d.cts = append(d.cts, h)
		ct := &modelCT{}
		d.m.cts = append(d.m.cts, ct)
		d.m.ctOf[h] = ct
	}
	return d
}

func pick[T any](r *rand.Rand, xs ...T) T { return xs[r.IntN(len(xs))] }

func (d *duel) randomME() (ME, List) {
	r := d.rng
	me := ME{
		Start: uint64(r.IntN(duelMemory - 64)), Length: uint64(r.IntN(64)), UID: pick(r, UIDAny, UIDAny, 1, 2),
		MatchBits: uint64(r.IntN(8)), MinFree: uint64(r.IntN(12)), MatchID: ID{NID: pick(r, NIDAny, 0, 1), PID: pick(r, PIDAny, 0)},
		IgnoreBits: pick[uint64](r, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, ^uint64(0)),
		Options:    EntryOptions(r.Uint32()) & (optMEAll &^ (OptMEIOVec | OptMEIsAccessible | OptMEHandlerIOVec)),
	}
	if r.IntN(4) > 0 {
		me.Options |= OptMEOpPut | OptMEOpGet
	}
	if r.IntN(3) > 0 {
		me.Options |= OptMEUseOnce
	}
	me.CT = pick(r, append(d.cts, CTNone)...)
	return me, pick(r, PriorityList, PriorityList, OverflowList)
}

// step does one random operation on both sides and compares.
func (d *duel) step() {
	r, m, ni := d.rng, d.m, d.ni
	d.user++
	switch r.IntN(13) {
	case 0, 1:
		d.append(nil, 0)
	case 2:
		d.append(m.ctOf[d.cts[r.IntN(len(d.cts))]], r.IntN(len(d.cts)))
	case 3:
		d.unlink()
	case 4:
		me, _ := d.randomME()
		op := pick(r, SearchOnly, SearchDelete)
		require.NoError(d.t, ni.MESearch(0, &me, op, d.user))
		m.search(&modelEntry{me: me, user: d.user}, op)
		m.settle()
	case 5:
		d.counters()
	case 6:
		d.triggeredUnlink()
	case 7:
		if r.IntN(4) == 0 {
			require.NoError(d.t, ni.PTDisable(0))
			m.disabled = true
		} else {
			require.NoError(d.t, ni.PTEnable(0))
			m.disabled = false
		}
	default:
		d.message()
	}
	d.compare()
}

func (d *duel) append(trig *modelCT, c int) {
	me, list := d.randomME()
	e := &modelEntry{me: me, list: list, user: d.user}
	if trig != nil {
		threshold := uint64(d.rng.IntN(6)) + trig.value.Success + trig.value.Failure
		h, err := d.ni.TriggeredMEAppend(0, &me, list, d.user, d.cts[c], threshold)
		if d.m.pending >= d.m.limits.MaxTriggeredOps || d.m.entries >= d.m.limits.MaxEntries {
			require.ErrorIs(d.t, err, ErrNoSpace)
			return
		}
		require.NoError(d.t, err)
		d.adopt(e, h)
		e.waiting = true
		d.m.trigger(d.cts[c], threshold, func() {
			if !d.m.append(e) {
				d.m.events = append(d.m.events, Event{Type: EventLink, Fail: NIDropped, List: list, UserPtr: e.user, Start: me.Start})
				d.m.release(e)
			}
		}, func() { d.m.release(e) })
		return
	}
	h, err := d.ni.MEAppend(0, &me, list, d.user)
	if d.m.entries >= d.m.limits.MaxEntries {
		require.ErrorIs(d.t, err, ErrNoSpace)
		return
	}
	if errors.Is(err, ErrListTooLong) {
		require.False(d.t, d.m.append(e))
		return
	}
	require.NoError(d.t, err)
	d.adopt(e, h)
	require.True(d.t, d.m.append(e))
	d.m.settle()
}

func (d *duel) adopt(e *modelEntry, h Handle) {
	require.Nil(d.t, d.m.alive[h], "a live handle was given out again")
	e.handle = h
	d.m.alive[h] = e
	d.m.entries++
	d.known = append(d.known, h)
	if len(d.known) > 200 {
		d.known = d.known[100:]
	}
}

func (d *duel) unlink() {
	if len(d.known) == 0 {
		return
	}
	h := d.known[d.rng.IntN(len(d.known))]
	e := d.m.alive[h]
	err := d.ni.MEUnlink(h)
	switch {
	case e == nil:
		require.ErrorIs(d.t, err, ErrArgInvalid)
	case !e.linked || e.headers > 0:
		require.ErrorIs(d.t, err, ErrInUse)
	default:
		require.NoError(d.t, err)
		d.m.prio, d.m.over = without(d.m.prio, e), without(d.m.over, e)
		d.m.release(e)
	}
}

func (d *duel) triggeredUnlink() {
	if len(d.known) == 0 {
		return
	}
	h := d.known[d.rng.IntN(len(d.known))]
	c := d.rng.IntN(len(d.cts))
	threshold := uint64(d.rng.IntN(6)) + d.m.cts[c].value.Success
	err := d.ni.Triggered(MEUnlink{ME: h}, d.cts[c], threshold)
	if d.m.alive[h] == nil {
		require.ErrorIs(d.t, err, ErrArgInvalid)
		return
	}
	if d.m.pending >= d.m.limits.MaxTriggeredOps {
		require.ErrorIs(d.t, err, ErrNoSpace)
		return
	}
	require.NoError(d.t, err)
	d.m.trigger(d.cts[c], threshold, func() {
		if e := d.m.alive[h]; e != nil && e.linked {
			d.m.prio, d.m.over = without(d.m.prio, e), without(d.m.over, e)
			e.linked, e.removed = false, true
			d.m.free(e)
		}
	}, func() {})
}

func (d *duel) counters() {
	r, m := d.rng, d.m
	c, target := r.IntN(len(d.cts)), r.IntN(len(d.cts))
	v := CTEvent{Success: uint64(r.IntN(4))}
	switch r.IntN(5) {
	case 0:
		require.NoError(d.t, d.ni.CTSet(d.cts[c], v))
		m.set(m.cts[c], v)
		m.settle()
	case 1:
		require.NoError(d.t, d.ni.CTInc(d.cts[c], v))
		m.bump(d.cts[c], v.Success, 0)
		m.settle()
	case 2:
		require.NoError(d.t, d.ni.CTCancelTriggered(d.cts[c]))
		for _, t := range m.cts[c].trigs {
			m.pending--
			t.cancel()
		}
		m.cts[c].trigs = nil
	default:
		threshold := uint64(r.IntN(8)) + m.cts[c].value.Success
		set := r.IntN(2) == 0
		var err error
		if set {
			err = d.ni.Triggered(CTSet{CT: d.cts[target], Value: v}, d.cts[c], threshold)
		} else {
			err = d.ni.Triggered(CTInc{CT: d.cts[target], Increment: v}, d.cts[c], threshold)
		}
		if m.pending >= m.limits.MaxTriggeredOps {
			require.ErrorIs(d.t, err, ErrNoSpace)
			return
		}
		require.NoError(d.t, err)
		m.trigger(d.cts[c], threshold, func() {
			if set {
				m.set(m.cts[target], v)
			} else {
				m.bump(d.cts[target], v.Success, 0)
			}
		}, func() {})
	}
}

func (d *duel) message() {
	r := d.rng
	h := Header{
		Kind: pick(r, OpPut, OpPut, OpGet, OpAtomic, OpFetchAtomic), NI: NIMatchingPhysical, Op: OpSUM, Type: Uint32,
		AckReq: pick(r, NoAck, Ack), Initiator: PhysID(uint32(r.IntN(3)), uint32(r.IntN(2))), UID: uint32(1 + r.IntN(2)),
		MatchBits: uint64(r.IntN(8)), HdrData: r.Uint64(), RLength: uint64(4 * r.IntN(10)), Ref: d.user,
		RemoteOffset: pick(r, 0, 0, uint64(r.IntN(70)), ^uint64(0)),
	}
	data := make([]byte, h.RLength)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	if h.Kind == OpGet {
		data = nil
	}
	del := d.ni.Port().Receive(&h)
	// In two pieces, the second first.
	half := h.RLength / 8 * 4
	if len(data) > 0 {
		d.ni.Port().Write(del, half, data[half:])
		d.ni.Port().Write(del, 0, data[:half])
	}
	d.ni.Port().Finish(del, del.Done())
	d.m.receive(&h, data)
	d.answers() // a get completes when its reply has left
	d.m.settle()
}

// answers compares and sends what waits in the outbox.
func (d *duel) answers() {
	for _, want := range d.m.answers {
		op := d.ni.Port().NextOp()
		require.NotNil(d.t, op, "no answer, want %+v", want)
		got := op.Header
		require.Equal(d.t, want, Header{
			Kind: got.Kind, Fail: got.Fail, List: got.List, MLength: got.MLength, RemoteOffset: got.RemoteOffset, Ref: got.Ref,
		})
		d.ni.Port().Sent(op, NIOK)
		d.ni.Port().Release(op)
	}
	d.m.answers = d.m.answers[:0]
	require.Nil(d.t, d.ni.Port().NextOp())
}

func (d *duel) compare() {
	for i, want := range d.m.events {
		got, err := d.ni.EQGet(d.q)
		require.NoError(d.t, err, "event %d: %v", i, want)
		if got != want {
			require.Equal(d.t, want, got, "event %d", i)
		}
	}
	d.m.events = d.m.events[:0]
	if n := d.ni.EQLen(d.q); n > 0 {
		ev, _ := d.ni.EQGet(d.q)
		require.Fail(d.t, "surplus event", "%d, first %+v", n, ev)
	}
	for i, h := range d.cts {
		v, err := d.ni.CTGet(h)
		require.NoError(d.t, err)
		require.Equal(d.t, d.m.cts[i].value, v, "counter %d", i)
	}
	require.Equal(d.t, d.m.status, d.ni.status)
	require.Equal(d.t, d.m.entries, d.ni.entries.live)
	require.Equal(d.t, len(d.m.heads), d.ni.unexpectedCount)
	require.Equal(d.t, d.m.pending, d.ni.counters.pending)
	if !bytes.Equal(d.m.mem, d.mem) {
		require.Fail(d.t, "memory differs")
	}
}

// TestEquivalence compares the package with the model: same events, counters,
// answers, registers and memory after every one of many random operations.
func TestEquivalence(t *testing.T) {
	for _, flow := range []bool{false, true} {
		for seed := range uint64(2) {
			d := newDuel(t, seed, flow)
			for i := range *equivalenceOps / 2 {
				d.step()
				if t.Failed() {
					t.Fatalf("flow control %v, seed %d, operation %d", flow, seed, i)
				}
			}
		}
	}
}
