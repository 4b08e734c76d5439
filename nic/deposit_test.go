package nic

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// depositStage is deposit alone, with what stands for match and schedule before
// it and for act beside it.
type depositStage struct {
	*alone
	d        deposit
	lines    map[int32]*host.Order
	messages []*toMemory
	// of each source: match bits in the order in which its messages were
	// through
	order map[int32][]uint64
	log   []string // what waiters are told
}

// toMemory is a message to memory.
type toMemory struct {
	in        *inbound
	frame     *Frame
	sent      Frame  // what it was, with a copy of its bytes
	addr      uint64 // of its entry
	skip      int
	mlength   int
	missing   []int
	left      int
	completes bool
	delivered int      // how often the completion handler was asked for
	landed    sim.Time // the last of its data
}

// The events of the neighbours.
const (
	kindArrives sim.Kind = kindsOfReceive + 0x80 + iota // packet, *toMemory
	kindHandled                                         // *toMemory: its completion handler has ended
	kindDoes                                            // func(): anything
)

func newDepositStage(t require.TestingT) *depositStage {
	x := &depositStage{alone: newAlone(t, kindsOfDeposit), lines: map[int32]*host.Order{2: {}, 3: {}}, order: map[int32][]uint64{}}
	x.d = deposit{env: &x.env, waiters: x}
	x.stage, x.others = x.d.handle, x.other
	return x
}

func (x *depositStage) other(e *sim.Event) {
	switch e.Kind {
	case kindArrives:
		x.arrives(e.P.(*toMemory), int(e.A))
	case kindDelivered:
		m := x.messages[e.P.(*inbound).frame.Header.MatchBits]
		m.delivered++
		require.Equal(x.t, 1, m.delivered)
		require.Zero(x.t, m.left, "the completion handler sees all of the message")
		require.Zero(x.t, m.in.data)
		m.in.completes = false
		x.post(x.now()+100*sim.Nanosecond, kindHandled, 0, m)
	case kindHandled:
		x.through(e.P.(*toMemory))
		x.d.complete(e.P.(*toMemory).in)
	case kindDoes:
		e.P.(func())()
	default:
		require.FailNow(x.t, "a stray event", "%#x", e.Kind)
	}
}

func (x *depositStage) through(m *toMemory) {
	x.order[m.sent.Source] = append(x.order[m.sent.Source], m.sent.Header.MatchBits)
}

// match does what match does for the header of a message.
func (x *depositStage) match(m *toMemory) {
	m.in = x.free.inbound(m.frame)
	m.in.iface, m.in.d, m.in.phase = x.iface, x.iface.Port.Receive(&m.frame.Header), phaseDeposit
	m.in.order, m.in.skip, m.in.completes = x.lines[m.frame.Source], int32(m.skip), m.completes
	require.True(x.t, m.in.d.Matched())
	require.Equal(x.t, uint64(m.mlength), m.in.d.MLength)
}

// arrives does what match and schedule do for a packet of a message whose
// header handler wants its data toMemory.
func (x *depositStage) arrives(m *toMemory, i int) {
	if m.in == nil {
		x.match(m)
	}
	if m.left--; m.left == 0 && !m.completes {
		x.through(m)
	}
	if slices.Contains(m.missing, i) {
		m.in.failed(portals.NISegv)
		x.d.missing(m.in, i)
		return
	}
	x.d.packet(m.in, i)
}

func (x *depositStage) answered(cookie uint64, from int, data []byte, length uint64) (taken, beyond int) {
	x.log = append(x.log, fmt.Sprintf("answered %d: %d B from %d of %d", cookie, len(data), from, length))
	return len(data), 0
}

func (x *depositStage) answerThere(cookie, _ uint64, fail portals.FailType) {
	x.log = append(x.log, fmt.Sprintf("there %d: %v at %v", cookie, fail, x.now()))
}

func (x *depositStage) replied(cookie, bytes uint64, fail portals.FailType) {
	x.log = append(x.log, fmt.Sprintf("replied %d: %d B, %v at %v", cookie, bytes, fail, x.now()))
}

// landings looks where data of messages is to go, and notes when it has landed.
type landings struct {
	host.Translator
	x *depositStage
}

func (l landings) Translate(a *host.Access, off, n int) (host.Status, bool) {
	m := l.x.messages[a.Ref.(*inbound).frame.Header.MatchBits]
	from, to := m.sent.Span(a.Index)
	from, to = max(from, m.skip), min(to, m.mlength)
	addr, contiguous := a.At(off)
	require.Equal(l.x.t, []any{m.addr + uint64(from-m.skip+off), to - from - off}, []any{addr, contiguous})
	require.Equal(l.x.t, []int{0, to - from}, []int{off, n})
	return l.Translator.Translate(a, off, n)
}

func (l landings) Done(a *host.Access, off, n int) {
	in := a.Ref.(*inbound)
	l.x.messages[in.frame.Header.MatchBits].landed = l.x.now()
	l.Translator.Done(a, off, n)
}

// draw makes a message: cut off by its entry, with a user header, with packets
// that come in any order behind the first, some of them without data.
func (x *depositStage) draw(rt *rapid.T, bits uint64) {
	length, fits := rapid.IntRange(0, 300).Draw(rt, "length"), rapid.IntRange(0, 300).Draw(rt, "fits")
	h := portals.Header{Kind: portals.OpPut, MatchBits: bits, AckReq: portals.NoAck}
	m := &toMemory{frame: x.frame(h, rapid.SampledFrom([]int32{2, 3}).Draw(rt, "source"), length, 64), completes: rapid.Bool().Draw(rt, "completion handler")}
	m.addr, m.mlength = x.entry(bits, uint64(fits), 0, nil), min(length, fits)
	m.skip = min(rapid.SampledFrom([]int{0, 0, 1, 64, 100}).Draw(rt, "user header"), m.mlength)
	m.left, m.sent = m.frame.Packets, *m.frame
	m.sent.Data = bytes.Clone(m.frame.Data)
	at := sim.Time(rapid.IntRange(0, 1000).Draw(rt, "from")) * sim.Nanosecond
	for _, i := range append([]int{0}, rapid.Permutation(firstNumbers(m.frame.Packets)[1:]).Draw(rt, "order")...) {
		if rapid.IntRange(0, 9).Draw(rt, "missing") == 0 {
			m.missing = append(m.missing, i)
		}
		x.post(at, kindArrives, uint64(i), m)
		at += sim.Time(rapid.IntRange(0, 300).Draw(rt, "gap")) * sim.Nanosecond
	}
	x.messages = append(x.messages, m)
}

func firstNumbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// Messages to memory that fails and tarries: every packet is in its place or
// not there at all, the record of a message's end comes behind the last of its
// data and says how much of it there is, completion handlers come once and see
// all of it, and the events of a source come in the order in which its messages
// were through.
func TestDepositWritesMessages(t *testing.T) {
	lost := 0
	rapid.Check(t, func(rt *rapid.T) {
		x := newDepositStage(rt)
		chance := rapid.SampledFrom([]float64{0, 0.2, 0.6})
		x.buses.Translate(landings{hosttest.NewRandom(x.engine, 1, &x.buses, hosttest.Chances{
			Fault: chance.Draw(rt, "fault"), Most: rapid.SampledFrom([]int{3, 8}).Draw(rt, "most"), Deny: rapid.SampledFrom([]float64{0, 0.1}).Draw(rt, "deny"),
			Late: chance.Draw(rt, "late"), Delay: 2 * sim.Microsecond,
		}), x})
		for k := range uint64(rapid.IntRange(1, 6).Draw(rt, "messages")) {
			x.draw(rt, k)
		}
		x.run()
		order := map[int32][]uint64{}
		for i, e := range x.events {
			order[int32(e.Initiator.NID)] = append(order[int32(e.Initiator.NID)], e.MatchBits)
			m := x.messages[e.MatchBits]
			require.Less(rt, m.landed, x.at[i], "the record is behind the data")
			lost += x.check(m, &e)
		}
		require.Equal(rt, x.order, order)
		require.Len(rt, x.events, len(x.messages))
	})
	if !testing.Short() { // which draws a fifth as often: once in a hundred times nothing is lost
		require.NotZero(t, lost)
	}
}

// check compares what a message has left behind with what its event and the
// report say, and returns how many of its packets memory did not take.
func (x *depositStage) check(m *toMemory, e *portals.Event) (lost int) {
	memory := x.memory(m.addr, aloneEntry)
	nothing, there := make([]byte, aloneEntry), m.skip // the user header is dealt with by handlers
	for i := range m.sent.Packets {
		from, to := m.sent.Span(i)
		if from, to = max(from, m.skip), min(to, m.mlength); from >= to {
			continue
		}
		got := memory[from-m.skip : to-m.skip]
		switch {
		case bytes.Equal(got, m.sent.Data[from:to]):
			require.NotContains(x.t, m.missing, i)
			there += to - from
		default:
			require.Equal(x.t, nothing[:to-from], got, "all of a packet or nothing")
			if !slices.Contains(m.missing, i) {
				lost++
			}
		}
	}
	require.Equal(x.t, nothing[max(m.mlength-m.skip, 0):], memory[max(m.mlength-m.skip, 0):], "nothing beyond")
	require.Equal(x.t, uint64(there), e.MLength)
	require.Equal(x.t, lost > 0 || len(m.missing) > 0, e.Fail == portals.NISegv, "%v", e.Fail)
	k := slices.IndexFunc(x.rep.Losses, func(l LostMessage) bool { return l.MatchBits == e.MatchBits })
	require.Equal(x.t, lost > 0, k >= 0)
	if lost > 0 {
		require.Equal(x.t, []int{lost, m.sent.Packets}, []int{x.rep.Losses[k].Packets, x.rep.Losses[k].Of})
		require.Regexp(x.t, `^memory at 0x[0-9a-f]+ could not be written: (DENIED|FAULT, 4 times \(nic.fault_tries, 3\))$`, x.rep.Losses[k].Cause)
	}
	require.Equal(x.t, m.delivered == 1, m.completes)
	return lost
}

// handlersWrite is a write of a handler.
type handlersWrite struct{ begins, ends sim.Time }

// drawWrites draws writes of handlers, and moments at which somebody begins to
// wait for those made before.
func drawWrites(rt *rapid.T) (writes []handlersWrite, waits []sim.Time, end sim.Time) {
	for range rapid.IntRange(1, 12).Draw(rt, "steps") {
		end += sim.Time(rapid.IntRange(1, 100).Draw(rt, "pause")) * sim.Nanosecond
		if rapid.Bool().Draw(rt, "waits") {
			waits = append(waits, end)
		} else {
			writes = append(writes, handlersWrite{end, end + sim.Time(rapid.IntRange(0, 400).Draw(rt, "takes"))*sim.Nanosecond})
		}
	}
	return writes, waits, end
}

// What waits for the writes of a message goes on when the last of those made
// before it has landed, and not for later ones; a message that has ended is
// there until its handlers' writes are through: a get, whose end has no record
// behind them.
func TestDepositBarriers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newDepositStage(rt)
		m := &toMemory{frame: x.frame(portals.Header{Kind: portals.OpGet, Ref: 1}, 2, 0, 64), left: 1}
		m.addr = x.entry(0, 64, 0, nil)
		x.messages = append(x.messages, m)
		x.match(m)
		went, other := map[*issue]sim.Time{}, x.others
		x.others = func(e *sim.Event) {
			if i, is := e.P.(*issue); is && e.Kind == kindIssue {
				require.Nil(rt, i.in)
				went[i] = x.now()
				return
			}
			other(e)
		}
		writes, waits, end := drawWrites(rt)
		x.post(end+1, kindArrives, 0, m) // the last handler has ended: it has made all of its writes
		for _, w := range writes {
			var number int
			x.post(w.begins, kindDoes, 0, func() { number = m.in.begin() })
			x.post(w.ends, kindDoes, 0, func() {
				require.NotNil(rt, m.in.frame, "the message is there")
				x.d.wrote(m.in, number)
			})
		}
		want := map[*issue]sim.Time{}
		for _, w := range waits {
			goes := sim.Time(0)
			for _, k := range writes {
				if k.begins < w {
					goes = max(goes, k.ends)
				}
			}
			if goes > w {
				i := x.free.issue()
				i.in = m.in
				want[i] = goes
				x.post(w, kindDoes, 0, func() { m.in.await(i) })
			}
		}
		require.NoError(rt, x.engine.Run())
		require.Equal(rt, want, went)
		for i := range want { //lint:maporder a set
			x.free.releaseIssue(i)
		}
		x.run()
		require.Equal(rt, 1, x.iface.Port.QueuedOps(), "the reply")
	})
}

// The reply to a get leaves behind the writes of its handlers where memory may
// be late, and at once where it is not.
func TestDepositAnswersGets(t *testing.T) {
	for _, paged := range []bool{false, true} {
		x := newDepositStage(t)
		if paged {
			x.buses.Translate(hosttest.Func(func(*host.Access, int, int) host.Status { return host.OK }))
		}
		m := &toMemory{frame: x.frame(portals.Header{Kind: portals.OpGet, Ref: 1}, 2, 0, 64), left: 1, addr: x.entry(0, 64, 0, nil)}
		m.frame.Header.RLength, m.mlength = 64, 64
		x.messages = append(x.messages, m)
		x.match(m)
		m.in.order = nil
		write := m.in.begin()
		x.d.packet(m.in, 0)
		require.Equal(t, map[bool]int{false: 1, true: 0}[paged], x.iface.Port.QueuedOps())
		x.d.wrote(m.in, write)
		require.Equal(t, 1, x.iface.Port.QueuedOps())
		require.NoError(t, x.free.Balanced())
	}
}

// A reply that a handler waits for goes to HPU memory packet by packet; the
// handler goes on when all of it is there, and what the reply completes is
// complete with its record.
func TestDepositAnswersHandlers(t *testing.T) {
	for _, missing := range []bool{false, true} {
		x := newDepositStage(t)
		require.NoError(t, x.iface.Port.Issue(&portals.HandlerOp{Kind: portals.OpGet, Length: 150, Cookie: 7, Target: portals.PhysID(2, 0)}))
		op := x.iface.Port.NextOp()
		h := op.Header
		x.iface.Port.Sent(op, portals.NIOK)
		x.iface.Port.Release(op)
		h.Kind, h.MLength = portals.OpReply, 150
		f := x.free.frame(150, 64)
		f.Header = h
		in := x.free.inbound(f)
		in.iface, in.d, in.order, in.phase = x.iface, x.iface.Port.ReplyTo(&h), &in.line, phaseAnswer
		x.d.packet(in, 0)
		want, fail, got := []string{"answered 7: 64 B from 0 of 150", "answered 7: 64 B from 64 of 150", "answered 7: 22 B from 128 of 150"}, portals.NIOK, 150
		if missing {
			fail, got, want = portals.NISegv, 86, append(want[:1], want[2])
			in.failed(fail)
			x.d.missing(in, 1)
		} else {
			x.d.packet(in, 1)
		}
		require.Equal(t, want[:len(want)-1], x.log)
		x.d.packet(in, 2)
		want = append(want, fmt.Sprintf("there 7: %v at %v", fail, sim.Time(0)))
		require.Equal(t, want, x.log)
		x.run()
		record := sim.NewRate(64, 1).Time(16) + 250*sim.Nanosecond
		require.Equal(t, append(want, fmt.Sprintf("replied 7: %d B, %v at %v", got, fail, record)), x.log)
	}
}
