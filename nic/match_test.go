package nic

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// matching alone: what follows it notes what comes, and what is to come after a
// header handler is drawn.
type matchStage struct {
	*alone
	m      match
	begins phase // what begin makes of a message
	wanted bool  // a handler waits for the reply
	missed bool  // there is no such interface
	log    []string
	sent   []portals.Header
}

func newMatchStage(t require.TestingT) *matchStage {
	x := &matchStage{alone: newAlone(t, kindsOfMatch)}
	x.m = match{env: &x.env, handlers: handlersAfterMatch{x}, next: x, answers: x, own: x, out: x}
	x.stage = func(e *sim.Event) { unknown("match", e) }
	return x
}

func (x *matchStage) interfaceOf(*portals.Header) *Interface {
	if x.missed {
		return nil
	}
	return x.iface
}

func (x *matchStage) answer(h *portals.Header) { x.sent = append(x.sent, *h) }

func (x *matchStage) awaited(cookie uint64) bool {
	require.Equal(x.t, uint64(7), cookie)
	return x.wanted
}

// note counts a packet; after the last one the message is gone.
func (x *matchStage) note(who, what string, in *inbound, i int) {
	x.log = append(x.log, fmt.Sprintf("%s %s %d", who, what, i))
	if in.left--; in.left == 0 {
		*in = inbound{}
	}
}

func (x *matchStage) packet(in *inbound, i int)  { x.note("deposit", "packet", in, i) }
func (x *matchStage) missing(in *inbound, i int) { x.note("deposit", "missing", in, i) }
func (x *matchStage) complete(*inbound)          { require.FailNow(x.t, "match completes nothing") }

// handlersAfterMatch stands for schedule.
type handlersAfterMatch struct{ x *matchStage }

func (h handlersAfterMatch) begin(in *inbound) {
	h.x.log = append(h.x.log, "begin")
	in.phase = h.x.begins
}
func (h handlersAfterMatch) packet(in *inbound, i int)  { h.x.note("schedule", "packet", in, i) }
func (h handlersAfterMatch) missing(in *inbound, i int) { h.x.note("schedule", "missing", in, i) }

// Every packet of a message goes where its header says: without handlers to the
// deposit, with them to the schedule for as long as they have a say, and one
// that comes without its data, or never, is missing there. Nothing comes before
// the header, and nothing is touched after the last packet.
func TestMatchSendsPacketsTheirWay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newMatchStage(rt)
		hasHandlers, matches := rapid.Bool().Draw(rt, "handlers"), rapid.Bool().Draw(rt, "matches")
		var spin *portals.Spin
		if hasHandlers {
			spin = &portals.Spin{}
		}
		bits := uint64(3)
		if !matches {
			bits = 4
		}
		x.entry(3, aloneEntry, 0, spin)
		n := rapid.IntRange(1, 6).Draw(rt, "packets")
		in := x.free.inbound(x.frame(portals.Header{Kind: portals.OpPut, MatchBits: bits}, 2, n*64, 64))
		f := in.frame
		f.Unread = rapid.IntRange(0, n).Draw(rt, "unread")
		arrive := rapid.IntRange(1, n).Draw(rt, "arrive")
		phases := rapid.SampledFrom([]phase{phaseHeader, phaseHandlers, phaseDeposit, phaseDiscard})
		x.begins = phases.Draw(rt, "begins as")
		where := map[phase]string{phaseHeader: "schedule", phaseHandlers: "schedule", phaseDeposit: "deposit", phaseDiscard: "deposit"}
		now := phaseDeposit
		var want []string
		switch {
		case !matches:
			now = phaseDiscard
		case hasHandlers:
			now, want = x.begins, append(want, "begin")
		}
		x.m.matched(in)
		for i := range arrive {
			what := "packet"
			if i >= n-f.Unread {
				what = "missing"
			}
			want = append(want, fmt.Sprintf("%s %s %d", where[now], what, i))
			if i == 0 {
				continue
			}
			if hasHandlers && matches { // the header handler has decided meanwhile
				next := phases.Draw(rt, "goes on as")
				want[len(want)-1] = fmt.Sprintf("%s %s %d", where[next], what, i)
				in.phase, now = next, next
			}
			x.m.packet(in, i)
		}
		if arrive < n {
			for i := arrive; i < n; i++ {
				want = append(want, fmt.Sprintf("%s missing %d", where[now], i))
			}
			x.m.missing(in, arrive)
		}
		require.Equal(rt, want, x.log)
		require.Empty(rt, x.sent)
		require.Zero(rt, x.m.dropped)
	})
}

// A message that lacks data fails: as the source says, if it could not read it,
// as the transport says, if it was given up; the first counts.
func TestMatchSaysWhyDataIsMissing(t *testing.T) {
	for _, c := range []struct {
		unread int
		want   portals.FailType
	}{{0, portals.NIUndeliverable}, {2, portals.NISegv}} {
		x := newMatchStage(t)
		x.entry(3, aloneEntry, 0, nil)
		in := x.free.inbound(x.frame(portals.Header{Kind: portals.OpPut, MatchBits: 3}, 2, 256, 64))
		in.frame.Unread = c.unread
		x.m.matched(in)
		x.m.packet(in, 1)
		require.Equal(t, portals.NIOK, in.fail)
		if c.unread > 0 {
			x.m.packet(in, 2)
		} else {
			in.left++ // one is still to come when it is looked at
			x.m.missing(in, 2)
		}
		require.Equal(t, c.want, in.fail)
	}
}

// A message to nobody is dropped and reported, and its initiator is told, if it
// waits for an answer. Nobody is told of answers to nobody.
func TestMatchOfNoProcess(t *testing.T) {
	const put, ack, reply = portals.OpPut, portals.OpAck, portals.OpReply
	for _, c := range []struct {
		kind     portals.OpKind
		ack      portals.AckReq
		answer   portals.OpKind
		answers  int
		reported bool
	}{
		{put, portals.NoAck, 0, 0, true},
		{put, portals.Ack, ack, 1, true},
		{portals.OpAtomic, portals.CTAck, ack, 1, true},
		{portals.OpAtomic, portals.NoAck, 0, 0, true},
		{portals.OpGet, portals.NoAck, reply, 1, true},
		{portals.OpFetchAtomic, portals.NoAck, reply, 1, true},
		{portals.OpSwap, portals.NoAck, reply, 1, true},
		{ack, 0, 0, 0, false},
		{reply, 0, 0, 0, false},
	} {
		x := newMatchStage(t)
		x.missed = true
		in := x.free.inbound(x.frame(portals.Header{Kind: c.kind, AckReq: c.ack, MatchBits: 9, Ref: 11}, 2, 200, 64))
		x.m.matched(in)
		require.Equal(t, []string{"deposit packet 0"}, x.log, "the others are discarded as they come")
		require.Equal(t, phaseDiscard, in.phase)
		require.Equal(t, int64(4), x.m.dropped)
		require.Len(t, x.sent, c.answers)
		if c.answers > 0 {
			h := x.sent[0]
			require.Equal(t, []any{c.answer, portals.NIUndeliverable, uint64(11)}, []any{h.Kind, h.Fail, h.Ref})
			require.Equal(t, [2]portals.ID{portals.PhysID(1, 0), portals.PhysID(2, 0)}, [2]portals.ID{h.Initiator, h.Target}, "back")
		}
		require.Len(t, x.rep.Losses, map[bool]int{true: 1}[c.reported])
		if c.reported {
			l := x.rep.Losses[0]
			require.Equal(t, []any{4, 4, uint64(200), uint64(200), "there is no process 0 with such an interface"}, []any{l.Packets, l.Of, l.Bytes, l.Length, l.Cause})
		}
	}
}

// A reply goes to memory, to a handler that waits for it, or, if nobody wants its values, nowhere.
func TestMatchOfReplies(t *testing.T) {
	for _, c := range []struct {
		cookie uint64
		wanted bool
		length uint64 // of the memory it is for
		want   phase
	}{{0, false, 64, phaseDeposit}, {7, false, 64, phaseDeposit}, {7, true, 0, phaseAnswer}, {7, false, 0, phaseDiscard}} {
		x := newMatchStage(t)
		x.wanted = c.wanted
		require.NoError(t, x.iface.Port.Issue(&portals.HandlerOp{
			Kind: portals.OpGet, Dest: portals.Region{Start: x.base, Length: c.length}, Length: 64, Cookie: c.cookie, Target: portals.PhysID(2, 0),
		}))
		op := x.iface.Port.NextOp()
		h := op.Header
		x.iface.Port.Sent(op, portals.NIOK)
		x.iface.Port.Release(op)
		h.Kind, h.MLength = portals.OpReply, 64
		f := x.free.frame(64, 64)
		f.Header = h
		in := x.free.inbound(f)
		in.left++
		x.m.matched(in)
		require.Equal(t, c.want, in.phase, "cookie %d, wanted %t, %d bytes", c.cookie, c.wanted, c.length)
		require.Same(t, &in.line, in.order, "it waits for nothing but itself")
		require.Equal(t, []string{"deposit packet 0"}, x.log)
	}
}

// An acknowledgement takes effect when its record is in host memory, and goes no further.
func TestMatchOfAcknowledgements(t *testing.T) {
	x := newMatchStage(t)
	md, err := x.ni.MDBind(&portals.MD{Start: x.base, Length: 64, EQ: x.eq})
	require.NoError(t, err)
	require.NoError(t, x.ni.Put(portals.Put{MD: md, Length: 64, Ack: portals.Ack, Target: portals.PhysID(2, 0), UserPtr: 5}))
	op := x.iface.Port.NextOp()
	h := op.Header
	x.iface.Port.Sent(op, portals.NIOK)
	x.iface.Port.Release(op)
	h.Kind, h.MLength = portals.OpAck, 64
	f := x.free.frame(0, 64)
	f.Header = h
	x.others = func(*sim.Event) { x.m.matched(x.free.inbound(f)) }
	x.post(sim.Microsecond, kindsOfReceive, 0, nil)
	x.run()
	require.Empty(t, x.log)
	require.Equal(t, []portals.EventType{portals.EventSend, portals.EventAck}, []portals.EventType{x.events[0].Type, x.events[1].Type})
	took := sim.NewRate(64, 1).Time(16) + 250*sim.Nanosecond
	require.Equal(t, []sim.Time{0, sim.Microsecond + took}, x.at)
}
