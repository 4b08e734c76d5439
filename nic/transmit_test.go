package nic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// transmitAlone is the first stage between an interface, whose programs are
// calls at certain times, and a list of the packets that it hands on.
type transmitAlone struct {
	*alone
	s      transmit
	md     portals.Handle
	sent   []handed
	frames []*Frame
}

// handed is a packet as transmit has handed it on.
type handed struct {
	f  *Frame
	i  int
	at sim.Time
}

const kindCall sim.Kind = kindsOfSchedule + iota // func() error

func newTransmitAlone(t require.TestingT, mtu int32) *transmitAlone {
	x := &transmitAlone{alone: newAlone(t, kindsOfTransmit)}
	x.env.fabric, x.env.rank = &fabric.Spec{MTU: mtu}, 1
	x.s = transmit{env: &x.env, next: x, handlers: x, nodes: 5, behind: map[int32]int{}}
	x.s.attach(x.iface)
	x.stage = x.s.handle
	x.others = func(e *sim.Event) {
		require.NoError(t, e.P.(func() error)())
		x.s.ready[0] = 1 // runtime tells of it
		x.s.drain()
	}
	mem, _ := x.space.Bytes(x.base, aloneBytes)
	for k := range mem {
		mem[k] = byte(k) ^ byte(k>>8) | 1
	}
	var err error
	x.md, err = x.ni.MDBind(&portals.MD{Start: x.base, Length: aloneBytes, EQ: x.eq})
	require.NoError(t, err)
	return x
}

func (x *transmitAlone) call(at sim.Time, f func() error) { x.post(at, kindCall, 0, f) }

// send is the stage behind: what it gets is there, or is said not to be.
func (x *transmitAlone) send(p packet) {
	f := p.f
	if p.i == 0 {
		x.frames = append(x.frames, f)
	}
	x.sent = append(x.sent, handed{f, p.i, x.now()})
	require.False(x.t, p.device)
}

// commandRead and answerThere are the handlers, of which there are none.
func (x *transmitAlone) commandRead(*Memory) { require.Fail(x.t, "a command of a handler") }

func (x *transmitAlone) answerThere(_, _ uint64, _ portals.FailType) {
	require.Fail(x.t, "an answer for a handler")
}

// finish lets everything happen.
func (x *transmitAlone) finish() {
	require.NoError(x.t, x.engine.Run())
	x.collect()
}

// close gives the frames back, as the receiver does, and looks whether anything is left.
func (x *transmitAlone) close() {
	for _, f := range x.frames {
		x.free.releaseFrame(f)
	}
	require.NoError(x.t, x.free.Balanced())
	for node, n := range x.s.behind { //lint:maporder each by itself
		require.Zero(x.t, n, "messages to node %d that wait for earlier ones", node)
	}
}

// drawnOp is an operation of the program.
type drawnOp struct {
	kind   portals.OpKind
	at     uint64 // in memory
	length int
	target uint32
}

// draw draws an operation and calls it at a time. user is what its event carries.
func (x *transmitAlone) draw(t *rapid.T, now sim.Time, user uint64) drawnOp {
	o := drawnOp{
		kind: rapid.SampledFrom([]portals.OpKind{portals.OpPut, portals.OpPut, portals.OpGet, portals.OpAtomic}).Draw(t, "kind"),
		at:   uint64(rapid.IntRange(0, 1<<15).Draw(t, "at")), length: rapid.SampledFrom([]int{0, 8, 96, 104, 800, 5000}).Draw(t, "bytes"),
		target: uint32(rapid.IntRange(2, 4).Draw(t, "target")),
	}
	to, n := portals.PhysID(o.target, 0), uint64(o.length)
	x.call(now, func() error {
		switch o.kind {
		case portals.OpPut:
			return x.ni.Put(portals.Put{MD: x.md, Offset: o.at, Length: n, Ack: portals.Ack, Target: to, UserPtr: user, HdrData: user})
		case portals.OpGet:
			return x.ni.Get(portals.Get{MD: x.md, Offset: o.at, Length: n, Target: to, UserPtr: user})
		default:
			return x.ni.Atomic(portals.Atomic{MD: x.md, Offset: o.at, Length: n, Ack: portals.Ack, Target: to, UserPtr: user, HdrData: user, Op: portals.OpSUM, Type: portals.Uint64})
		}
	})
	return o
}

// check compares the packets with the operations, in the order of which the
// frames are numbered: each once, those of a message in their order, headers to
// one node in the order of the operations, of no more bytes than the MTU, no
// element in two, with the bytes of memory as far as those could be read.
func (x *transmitAlone) check(ops []drawnOp) (unread int) {
	packets := map[uint64]int{}
	latest := map[int32]uint64{}
	for _, p := range x.sent {
		f, o := p.f, &ops[p.f.Number-1]
		require.Equal(x.t, packets[f.Number], p.i, "packet of message %d", f.Number)
		packets[f.Number]++
		if p.i == 0 {
			require.Less(x.t, latest[f.Target], f.Number, "a message overtakes an earlier one to node %d", f.Target)
			latest[f.Target] = f.Number
		}
		require.Equal(x.t, []any{o.kind, int32(o.target), int32(1)}, []any{f.Header.Kind, f.Target, f.Source})
		from, to := f.Span(p.i)
		require.LessOrEqual(x.t, to-from, int(x.env.fabric.MTU))
		if o.kind == portals.OpAtomic {
			require.Zero(x.t, from%8)
		}
		if f.carries(p.i) {
			require.Equal(x.t, string(x.memory(x.base+o.at+uint64(from), uint64(max(1, to-from)))[:to-from]), string(f.Data[from:to]))
		} else {
			require.Equal(x.t, string(make([]byte, to-from)), string(f.Data[from:to]))
			unread++
		}
	}
	for i, o := range ops {
		mtu, want := int(x.env.fabric.MTU), 1
		if o.kind == portals.OpAtomic {
			mtu -= mtu % 8
		}
		if o.kind != portals.OpGet {
			want = max(1, (o.length+mtu-1)/mtu)
		}
		require.Equal(x.t, want, packets[uint64(i)+1], "packets of operation %d", i)
	}
	return unread
}

// Operations of all kinds to several nodes, on memory that fails or not: see
// check. SEND comes once for each that carries data, behind its last packet,
// and fails if that could not be read; the report says so once.
func TestTransmitCutsPackets(t *testing.T) {
	lost := 0
	rapid.Check(t, func(t *rapid.T) {
		x := newTransmitAlone(t, 100)
		if rapid.Bool().Draw(t, "memory fails") {
			x.buses.Translate(hosttest.NewRandom(x.engine, 1, &x.buses, hosttest.Chances{Fault: 0.3, Most: 6, Late: 0.2, Delay: sim.Microsecond, Deny: 0.02}))
		}
		var ops []drawnOp
		now := sim.Time(0)
		for user := range uint64(rapid.IntRange(1, 20).Draw(t, "operations")) {
			now += sim.Time(rapid.SampledFrom([]int{0, 0, 30, 900}).Draw(t, "pause")) * sim.Nanosecond
			ops = append(ops, x.draw(t, now, user))
		}
		x.finish()
		unread := x.check(ops)
		require.EqualValues(t, unread, x.s.unread)
		last, damaged, sends := map[uint64]sim.Time{}, map[uint64]bool{}, map[uint64]int{}
		for _, p := range x.sent {
			last[p.f.Number-1] = p.at
		}
		for _, l := range x.rep.Losses {
			lost++
			require.Positive(t, l.Packets)
			unread -= l.Packets
		}
		require.Zero(t, unread)
		for k, e := range x.events {
			require.GreaterOrEqual(t, x.at[k], last[e.UserPtr], "SEND before the last packet")
			if e.Type == portals.EventAck { // which nobody will send
				require.Equal(t, portals.NISegv, e.Fail)
				continue
			}
			require.Equal(t, portals.EventSend, e.Type)
			damaged[e.UserPtr] = e.Fail == portals.NISegv
			sends[e.UserPtr]++
		}
		for i, o := range ops {
			require.Equal(t, map[bool]int{true: 0, false: 1}[o.kind == portals.OpGet], sends[uint64(i)], "SEND of operation %d", i)
		}
		failed := 0
		for _, is := range damaged { //lint:maporder a sum
			if is {
				failed++
			}
		}
		require.Len(t, x.rep.Losses, failed)
		x.close()
	})
	require.Positive(t, lost)
}

// Packet i of a message alone leaves when its request has been at memory and
// its data has crossed behind that of those before it: 2L + (i+1)·D(MTU).
func TestTransmitReadsAtTheSpeedOfTheBus(t *testing.T) {
	for _, n := range []int{1, 100, 101, 950} {
		x := newTransmitAlone(t, 100)
		x.call(sim.Microsecond, func() error { return x.ni.Put(portals.Put{MD: x.md, Length: uint64(n), Target: portals.PhysID(2, 0)}) })
		x.finish()
		require.Len(t, x.sent, (n+99)/100)
		rate := sim.NewRate(64, 1)
		at := sim.Microsecond + 2*250*sim.Nanosecond
		for i, p := range x.sent {
			at += rate.Time(int64(min(100, n-100*i)))
			require.Equal(t, at, p.at, "packet %d", i)
		}
		x.close()
	}
}

// With a transport that knows, SEND waits for what it says, in whatever order
// it says it: it fails if the message could not be delivered, and so does the
// ACK that was asked for. The report counts the packets without
// acknowledgement.
func TestTransmitTellsWhatTheTransportKnows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTransmitAlone(t, 100)
		x.s.undelivered, x.s.answers, x.s.owed = map[uint64]*outgoing{}, map[uint64]portals.Header{}, map[int32][]portals.Header{}
		x.s.reason = func(int32) string { return "it was Monday" }
		var ops []drawnOp
		now := sim.Time(0)
		for user := range uint64(rapid.IntRange(1, 12).Draw(t, "operations")) {
			ops = append(ops, x.draw(t, now, user))
		}
		require.NoError(t, x.engine.Run())
		x.collect()
		require.Empty(t, x.events)
		require.Len(t, x.s.undelivered, len(ops))
		x.check(ops)
		order := rapid.Permutation(x.frames).Draw(t, "order")
		want := map[uint64][]portals.FailType{}
		left := 0
		for k, f := range order {
			fail := rapid.SampledFrom([]portals.FailType{portals.NIOK, portals.NIUndeliverable}).Draw(t, "fail")
			missing := 0
			if fail != portals.NIOK {
				missing = rapid.IntRange(1, f.Packets).Draw(t, "not acknowledged")
			}
			left += missing
			x.engine.Post(x.now()+sim.Time(k+1)*sim.Microsecond, x.id, x.id, kindEnded, f.Number<<failBits|uint64(fail), uint64(missing), nil)
			user := f.Number - 1
			if ops[user].kind != portals.OpGet || fail != portals.NIOK { // SEND, or REPLY
				want[user] = append(want[user], fail)
			}
			if ops[user].kind != portals.OpGet && fail != portals.NIOK { // and ACK
				want[user] = append(want[user], fail)
			}
		}
		x.finish()
		got := map[uint64][]portals.FailType{}
		for _, e := range x.events {
			got[e.UserPtr] = append(got[e.UserPtr], e.Fail)
		}
		require.Equal(t, want, got)
		require.Empty(t, x.s.undelivered)
		for _, l := range x.rep.Losses {
			require.True(t, l.Unacknowledged)
			left -= l.Packets
		}
		require.Zero(t, left)
		x.close()
	})
}

// An event of another stage is a mistake of the program.
func TestTransmitKnowsItsEvents(t *testing.T) {
	var s transmit
	require.Panics(t, func() { s.handle(&sim.Event{Kind: kindsOfTransmit + 77}) })
}
