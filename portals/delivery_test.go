package portals

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/poison"
)

// What every message touches begins cache lines of 64 bytes.
func TestHotObjectsBeginCacheLines(t *testing.T) {
	if poison.On { // marked objects are larger
		return
	}
	for _, x := range []any{entry{}, pt{}, ct{}, Op{}} {
		require.Zero(t, reflect.TypeOf(x).Size()%64, "%T", x)
	}
	field, _ := reflect.TypeFor[Delivery]().FieldByName("reply")
	require.Equal(t, uintptr(64), field.Offset)
	field, _ = reflect.TypeFor[entry]().FieldByName("pt")
	require.Equal(t, uintptr(64), field.Offset)
}

// A transport may use the header of a request again after Finish, also where the events come later.
func TestHeaderMayGoAfterFinish(t *testing.T) {
	once := OptMEOpPut | OptMEOpGet
	for _, c := range []struct {
		name    string
		kind    OpKind
		options EntryOptions
		end     func(p *pair, h *Header, d *Delivery) // ends with the events
	}{
		{"put", OpPut, once, func(p *pair, _ *Header, d *Delivery) { p.b.Port().Finish(d, d.Done()) }},
		{"get", OpGet, once, func(p *pair, h *Header, d *Delivery) {
			p.b.Port().Finish(d, d.Done())
			*h = Header{}
			op := p.b.Port().NextOp()
			require.Equal(t, uint64(7), op.Header.MatchBits)
			p.b.Port().Sent(op, NIOK)
		}},
		{"pending", OpPut, once, func(p *pair, h *Header, d *Delivery) {
			p.b.Port().Finish(d, Outcome{Pending: true})
			*h = Header{}
			p.b.Port().Finish(d, d.Done())
		}},
		{"behind another", OpPut, once | OptMEManageLocal, func(p *pair, h *Header, d *Delivery) {
			second := *h
			e := p.b.Port().Receive(&second)
			p.b.Port().Finish(e, e.Done())
			second = Header{}
			p.b.Port().Finish(d, d.Done())
			ev, err := p.b.EQGet(p.bq)
			require.NoError(t, err)
			require.Equal(t, uint64(9), ev.HdrData)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, 0)
			_, err := p.b.MEAppend(0, &ME{
				Length: 64, UID: UIDAny, MatchID: AnyID, MatchBits: 7, Options: c.options | OptMEEventLinkDisable,
			}, PriorityList, 0)
			require.NoError(t, err)
			h := &Header{Kind: c.kind, NI: p.b.Kind(), MatchBits: 7, HdrData: 9, RLength: 8, Target: PhysID(1, 0)}
			d := p.b.Port().Receive(h)
			require.True(t, d.Matched())
			c.end(p, h, d)
			ev, err := p.b.EQGet(p.bq)
			require.NoError(t, err)
			require.Equal(t, []uint64{7, 9, 8}, []uint64{ev.MatchBits, ev.HdrData, ev.RLength})
		})
	}
}

// A list's latest answer is no answer any more when the list changes, or to
// another initiator or other bits.
func TestLatestAnswerIsForgotten(t *testing.T) {
	p := newPair(t, 0)
	appended := func(length uint64, id ID, options EntryOptions) Handle {
		h, err := p.b.MEAppend(0, &ME{Length: length, UID: UIDAny, MatchID: id, Options: OptMEOpPut | options}, PriorityList, 0)
		require.NoError(t, err)
		return h
	}
	matched := func(pid uint32, bits, length uint64) Handle {
		require.NoError(t, p.b.PTEnable(0)) // a message without an entry disables it
		d := p.b.Port().Receive(&Header{Kind: OpPut, NI: p.b.Kind(), Initiator: PhysID(0, pid), MatchBits: bits, RLength: length, Target: PhysID(1, 0)})
		defer p.b.Port().Finish(d, d.Done())
		return d.Handle()
	}
	first, anyone := appended(64, PhysID(0, 1), 0), appended(64, AnyID, 0)
	for range 2 {
		require.Equal(t, first, matched(1, 0, 8))
	}
	require.Equal(t, anyone, matched(2, 0, 8))
	require.Zero(t, matched(2, 1, 8))
	require.Equal(t, first, matched(1, 0, 8))
	require.NoError(t, p.b.MEUnlink(first))
	require.Equal(t, anyone, matched(1, 0, 8))
	require.NoError(t, p.b.MEUnlink(anyone))
	fits, longer := appended(16, AnyID, OptMENoTruncate), appended(64, AnyID, OptMENoTruncate)
	require.Equal(t, fits, matched(1, 0, 8))
	require.Equal(t, longer, matched(1, 0, 32), "lengths decide")
	require.NoError(t, p.b.MEUnlink(fits))
	require.NoError(t, p.b.MEUnlink(longer))
	once := appended(64, AnyID, OptMEUseOnce)
	require.Equal(t, once, matched(1, 0, 8))
	require.Zero(t, matched(1, 0, 8))
}

// A portal table entry that was freed takes nothing any more, and one made in its place does.
func TestLatestPortalTableEntryIsForgotten(t *testing.T) {
	p := newPair(t, 0)
	h := &Header{Kind: OpPut, NI: p.b.Kind(), PT: 0, RLength: 8, Target: PhysID(1, 0)}
	put := func() FailType {
		d := p.b.Port().Receive(h)
		defer p.b.Port().Finish(d, d.Done())
		return d.Fail
	}
	me, err := p.b.MEAppend(0, &ME{Length: 64, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut}, PriorityList, 0)
	require.NoError(t, err)
	require.Equal(t, NIOK, put())
	require.NoError(t, p.b.MEUnlink(me))
	require.NoError(t, p.b.PTFree(0))
	require.Equal(t, NIDropped, put())
	_, err = p.b.PTAlloc(0, EQNone, 0)
	require.NoError(t, err)
	_, err = p.b.MEAppend(0, &ME{Length: 64, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut}, PriorityList, 0)
	require.NoError(t, err)
	require.Equal(t, NIOK, put())
}

// A delivery that was open in an entry's order when its interface was closed is
// used again, by whichever interface has the same spare objects: of that order
// nothing is left.
func TestDeliveriesOfAClosedInterfaceAreInNoOrder(t *testing.T) {
	p := newPair(t, 0)
	ni := p.b
	put := func(n uint64) *Delivery {
		d := ni.Port().Receive(&Header{Kind: OpPut, NI: ni.Kind(), HdrData: n, RLength: 8, Target: PhysID(1, 0)})
		require.True(t, d.Matched())
		return d
	}
	local := &ME{Length: 64, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut | OptMEManageLocal | OptMEEventLinkDisable}
	_, err := ni.MEAppend(0, local, PriorityList, 0)
	require.NoError(t, err)
	former := []*Delivery{put(1), put(2), put(3)}
	require.NoError(t, ni.NIFini())
	for _, d := range former {
		ni.Port().Finish(d, d.Done())
	}

	ni, _, err = ni.Process().NIInit(IfaceDefault, OptNIMatching|OptNIPhysical, 0, nil)
	require.NoError(t, err)
	q, err := ni.EQAlloc(8)
	require.NoError(t, err)
	_, err = ni.PTAlloc(0, q, 0)
	require.NoError(t, err)
	_, err = ni.MEAppend(0, local, PriorityList, 0)
	require.NoError(t, err)
	for round := range uint64(2) {
		for n, d := range []*Delivery{put(1), put(2), put(3)} {
			ni.Port().Finish(d, d.Done())
			ev, err := ni.EQGet(q)
			require.NoError(t, err)
			require.Equal(t, []uint64{uint64(n) + 1, 8 * (3*round + uint64(n))}, []uint64{ev.HdrData, ev.Start})
		}
	}
}

// A stranger's message disables a portal table entry with flow control only if one of
// its list's entries is for the stranger, too.
func TestStrangersTriggerNoFlowControl(t *testing.T) {
	const own, stranger = 1, 7
	p := newPair(t, 0)
	p.b.Port().Stranger = func(uid uint32) bool { return uid == stranger }
	put := func(uid uint32, bits uint64) FailType {
		d := p.b.Port().Receive(&Header{Kind: OpPut, NI: p.b.Kind(), UID: uid, MatchBits: bits, RLength: 8, Target: PhysID(1, 0)})
		defer p.b.Port().Finish(d, d.Done())
		return d.Fail
	}
	appended := func(uid uint32, list List) {
		_, err := p.b.MEAppend(0, &ME{Length: 64, UID: uid, MatchID: AnyID, Options: OptMEOpPut}, list, 0)
		require.NoError(t, err)
	}
	require.Equal(t, NIPermViolation, put(stranger, 0), "an empty list")
	appended(own, PriorityList)
	require.Equal(t, NIPermViolation, put(stranger, 0))
	require.Equal(t, NIPermViolation, put(stranger, 1))
	require.Equal(t, NIOK, put(own, 0))
	require.Equal(t, NIPTDisabled, put(own, 1))
	require.NoError(t, p.b.PTEnable(0))
	appended(UIDAny, OverflowList)
	require.Equal(t, NIPTDisabled, put(stranger, 1), "the process wants messages of strangers there")
}
