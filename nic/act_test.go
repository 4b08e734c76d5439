package nic

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// actStage is act alone. Its handlers are lists of actions: what package hpu
// and the schedule do for one is done here, on a real program's memory.
type actStage struct {
	*alone
	d       act
	program *hpu.Program
	memory  *Memory
	state   uint32 // address of the HPU memory
	hands   []*hand
	room    int    // of the egress
	inside  [3]int // packets of handlers in it, by tenant
	takes   sim.Time
	left    []departed
	expired func(t *timer) // a message of a periodic timer has left
	after   func()         // every event
}

// hand is a handler.
type hand struct {
	x       *actStage
	r       *run
	in      *inbound
	addr    uint64 // of its entry's memory
	actions []hpu.Action
	before  func(k int, a *hpu.Action) // the handler's own code in front of action k
	results []int64
	asked   []sim.Time // the handler's own time of the call
	ended   []sim.Time // when it went on
}

// departed is a message that has left.
type departed struct {
	at   sim.Time
	kind portals.OpKind
	bits uint64
	data []byte
	o    outgoing
}

// The events of the neighbours.
const (
	kindActs sim.Kind = kindsOfSchedule + 0x80 + iota // *hand: its next action
	// *hand: the time of an action that waits has come
	kindWaits
	// device: a packet of a handler has left the egress
	kindLeaves
	kindWaiting // func(): anything
)

func newActStage(t require.TestingT, engine hpu.Engine, module []byte, contexts int) *actStage {
	x := &actStage{alone: newAlone(t, kindsOfAct), room: 1 << 30}
	*x.hpu = HPUSpec{Clock: 1e9, Cores: contexts, Contexts: 1, DMAHandles: 3, DMABytes: 1 << 20, DMAWrite: Landed, MaxCycles: 1 << 20}
	x.spec.HandlerCommands, x.env.fabric = 1<<20, &fabric.Spec{MTU: 512}
	device := &hpu.Spec{
		Cores: contexts, Contexts: 1, PacketBytes: 512, StackBytes: 512, MaxCodeBytes: 1 << 18, MaxFunctions: 1000, MaxMemoryBytes: 1 << 20,
		MaxHPUMemoryBytes: 1 << 20, MaxCallDepth: 100, Costs: hpu.CostTable{Import: 1, Branch: 1, Call: 1, CallIndirect: 1, Spill: 1, Registers: 2, Operands: 3, BulkBytesPerCycle: 8},
	}
	m, err := hpu.Load("script", module, device)
	require.NoError(t, err)
	image, err := engine.Compile(m, 1<<16)
	require.NoError(t, err)
	x.program, err = image.Instantiate("alone", &x.d)
	require.NoError(t, err)
	x.state, _ = x.program.HPUMemory()
	x.memory = &Memory{name: "script", program: x.program}
	x.d = act{env: &x.env, sched: x, dma: dmaRoom{hpu: x.hpu}, requests: requests{sched: x}, out: x, room: x, deposits: x, nodes: 4, runs: make([]*run, contexts)}
	cores := &pool{name: "HPU", hpu: x.hpu, cores: make([]core, contexts)}
	for i := range x.d.runs {
		cores.cores[i].pool = cores
		x.d.runs[i] = &run{index: i, core: &cores.cores[i]}
	}
	x.stage, x.others, x.after = x.d.handle, x.other, func() {}
	return x
}

// begin lets a handler of a message of its own run from a time on.
func (x *actStage) begin(at sim.Time, order *host.Order, actions ...hpu.Action) *hand {
	k := len(x.hands)
	h := &hand{x: x, r: x.d.runs[k], actions: actions, addr: x.entry(uint64(k), aloneEntry, 0, &portals.Spin{}), before: func(int, *hpu.Action) {}}
	f := x.frame(portals.Header{Kind: portals.OpPut, MatchBits: uint64(k), AckReq: portals.Ack, Ref: 1}, 2, 8, 512)
	h.in = x.free.inbound(f)
	h.in.iface, h.in.d, h.in.order, h.in.phase = x.iface, x.iface.Port.Receive(&f.Header), order, phaseHandlers
	h.in.handlers = &installed{memory: x.memory}
	r := h.r
	r.active, r.ctx, r.task, r.number, r.generation = true, x.program.Context(k), task{in: h.in, kind: payloadHandler}, int64(k+1), 1
	x.hands = append(x.hands, h)
	x.post(at, kindActs, 0, h)
	return h
}

// local is HPU memory of a handler's own.
func (h *hand) local(off int) uint32 { return h.x.state + uint32(h.r.index*4096+off) }

func (h *hand) bytes(off, n int) []byte { return h.x.program.Memory()[h.local(off):][:n] }

func (x *actStage) other(e *sim.Event) {
	switch e.Kind {
	case kindActs:
		e.P.(*hand).act()
	case kindWaits:
		h := e.P.(*hand)
		queue := x.d.dma.waits.len()
		result, ready := x.d.suspended(h.r)
		switch h.r.wait.op {
		case hpu.OpDMAToHost, hpu.OpDMAFromHost, hpu.OpDMAFAdd:
			require.True(x.t, queue == 0 || x.d.dma.waits.len() == queue+1, "nobody overtakes who waits for room")
		}
		if ready {
			h.goOn(result)
		}
	case kindLeaves:
		x.inside[e.A]--
		x.d.egressSpace()
	case kindWaiting:
		e.P.(func())()
	default:
		require.FailNow(x.t, "a stray event", "%#x", e.Kind)
	}
	x.after()
}

// act makes the next action of a handler.
func (h *hand) act() {
	k := len(h.results)
	r := h.r
	if k == len(h.actions) {
		h.x.d.unlooked(r)
		r.active = false
		return
	}
	a := h.actions[k]
	h.before(k, &a)
	r.start, r.charged = h.x.now(), 0
	h.asked = append(h.asked, r.at(a.Cycles))
	queue := h.x.d.dma.waits.len()
	result, blocked := h.x.d.Act(r.ctx, &a)
	if queue > 0 && a.Op == hpu.OpDMAToHostNB {
		require.Equal(h.x.t, hpu.NoSpace, result)
	}
	if a.Op.MayBlock() && blocked {
		h.x.post(r.at(a.Cycles), kindWaits, 0, h)
		return
	}
	require.False(h.x.t, blocked, "%v", a.Op)
	h.results = append(h.results, result)
	h.ended = append(h.ended, r.at(a.Cycles))
	h.x.post(r.at(a.Cycles), kindActs, 0, h)
}

func (h *hand) goOn(result int64) {
	h.results, h.ended = append(h.results, result), append(h.ended, h.x.now())
	h.act()
}

// resumable stands for the schedule, whose cores are all idle.
func (x *actStage) resumable(r *run, result int64) {
	h := x.hands[r.index]
	require.Less(x.t, len(h.results), len(h.asked), "it waits")
	h.goOn(result)
}

// The way of a message out of the NIC, and its room.

func (x *actStage) drain() {}

func (x *actStage) prepare(ni *Interface, op *portals.Op, by *issue) *outgoing {
	o := x.free.outgoing()
	o.frame, o.op, o.iface = x.free.frame(int(op.Length()), 512), op, ni
	if x.d.dma.turns != nil {
		o.frame.tenant = by.owner.tenant
	}
	return o
}

func (x *actStage) start(o *outgoing) {
	data := make([]byte, o.op.Length())
	if inline := o.op.Inline(); inline != nil {
		copy(data, inline)
	} else {
		require.True(x.t, o.iface.Port.Read(o.op, 0, data) || len(data) == 0)
	}
	x.left = append(x.left, departed{x.now(), o.op.Header.Kind, o.op.Header.MatchBits, data, *o})
	if t := o.frame.timer; t != nil {
		x.expired(t)
	}
	if o.device {
		x.inside[o.frame.tenant]++
		x.post(x.now()+x.takes, kindLeaves, uint64(o.frame.tenant), nil)
	}
	if m := o.command; m != nil {
		x.post(x.now()+x.takes, kindWaiting, 0, func() { x.d.requests.commandRead(m) })
	}
	o.iface.Port.Sent(o.op, portals.NIOK)
	o.iface.Port.Release(o.op)
	x.free.releaseFrame(o.frame)
	x.free.releaseOutgoing(o)
}

func (x *actStage) egressRoom(tenant uint16, promised int) bool {
	return x.inside[tenant]+promised < x.room
}

func (x *actStage) wrote(in *inbound, _ int) {
	in.underway--
	require.GreaterOrEqual(x.t, int(in.underway), 0)
}

// finish ends the run and looks whether everything has been given back.
func (x *actStage) finish() {
	require.NoError(x.t, x.engine.Run())
	for _, h := range x.hands {
		require.Len(x.t, h.results, len(h.actions), "every action is answered once")
		require.Zero(x.t, h.in.underway)
		x.free.releaseInbound(h.in)
	}
	require.Zero(x.t, x.d.dma.bytes)
	require.Zero(x.t, x.d.dma.waits.len()+x.d.egress.len()+x.d.requests.promised+x.d.requests.commands+x.memory.uses)
	require.Len(x.t, x.d.requests.unused, len(x.d.requests.answers))
	require.NoError(x.t, x.free.Balanced())
}

// withEngine gives a test the engine and a module, of which only the memory matters.
func withEngine(t *testing.T, test func(e hpu.Engine, module []byte)) {
	module, err := os.ReadFile("../handlers/sum/sum.wasm")
	require.NoError(t, err)
	e, err := hpu.NewEngine("wazero")
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	test(e, module)
}

// The times of a handler's DMA on an idle bus: a write is through when it has
// landed, or, where the device says so, when the bus takes it; a read and an
// atomic are there and back. Bytes move as they were at the call, in place, and
// what is outside is refused.
func TestActTimesOfDMA(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		const L, cycles = 250 * sim.Nanosecond, 40
		D, pattern := sim.NewRate(64, 1).Time, make([]byte, 1000)
		for i := range pattern {
			pattern[i] = byte(i) | 1
		}
		for _, c := range []struct {
			name   string
			action hpu.Action
			until  string
			takes  sim.Time
			result int64
		}{
			{"write", hpu.Action{Op: hpu.OpDMAToHost, Offset: 8, Len: 1000}, Landed, D(1000) + L, 0},
			{"write, initiated", hpu.Action{Op: hpu.OpDMAToHost, Offset: 8, Len: 1000}, Initiated, 0, 0},
			{"read", hpu.Action{Op: hpu.OpDMAFromHost, Offset: 8, Len: 1000}, Landed, 2*L + D(1000), 0},
			{"add", hpu.Action{Op: hpu.OpDMAFAdd, Offset: 8, A: 5}, Landed, 2*L + D(8), 0},
			{"swap", hpu.Action{Op: hpu.OpDMACAS, Offset: 8, A: 0, B: 9}, Landed, 2*L + D(8), 1},
			{"no swap", hpu.Action{Op: hpu.OpDMACAS, Offset: 8, A: 1, B: 9}, Landed, 2*L + D(8), 0},
			{"beyond the entry", hpu.Action{Op: hpu.OpDMAToHost, Offset: aloneEntry - 4, Len: 8}, Landed, 0, hpu.Denied},
			{"another space", hpu.Action{Op: hpu.OpDMAFromHost, Space: 2, Len: 8}, Landed, 0, hpu.Denied},
			{"a crooked atomic", hpu.Action{Op: hpu.OpDMAFAdd, Offset: 4}, Landed, 0, hpu.Invalid},
			{"a write without waiting", hpu.Action{Op: hpu.OpDMAToHostNB, Offset: 8, Len: 1000}, Landed, 0, 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				x := newActStage(t, e, module, 1)
				x.hpu.DMAWrite = c.until
				a := c.action
				a.Cycles = cycles
				h := x.begin(sim.Microsecond, nil, a)
				h.actions[0].Local = h.local(0)
				copy(h.bytes(0, 1000), pattern)
				x.post(sim.Microsecond+cycles*sim.Nanosecond+1, kindWaiting, 0, func() {
					if a.Op != hpu.OpDMAFromHost {
						// the handler may reuse the buffer: the write has the
						// bytes of the call
						clear(h.bytes(0, 1000))
					}
				})
				x.finish()
				require.Equal(t, []int64{c.result}, h.results)
				require.Equal(t, []sim.Time{sim.Microsecond + cycles*sim.Nanosecond + c.takes}, h.ended)
				host := x.hostMemory(h)
				switch {
				case c.result < 0:
				case a.Op == hpu.OpDMAToHost && c.until == Landed:
					require.Equal(t, pattern, host[8:][:1000])
				case a.Op == hpu.OpDMAFAdd:
					require.Equal(t, uint64(5), binary.LittleEndian.Uint64(host[8:]))
				case a.Op == hpu.OpDMACAS:
					require.Equal(t, uint64(9*c.result), binary.LittleEndian.Uint64(host[8:]))
				}
			})
		}
	})
}

// hostMemory is the memory of a handler's entry.
func (x *actStage) hostMemory(h *hand) []byte { return x.alone.memory(h.addr, aloneEntry) }

// Operations from host memory and timers wait at the NIC, as many as
// nic.handler_commands; one more is refused at once. They leave at the
// handler's own time and theirs, and what is to follow the writes of its
// message behind them.
func TestActHoldsCommands(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		x := newActStage(t, e, module, 1)
		x.spec.HandlerCommands, x.takes = 2, sim.Microsecond
		put := hpu.Action{Op: hpu.OpPutFromHost, Cycles: 10, Desc: hpu.Operation{Length: 8, TargetNID: 2, MatchBits: 1}}
		timer := hpu.Action{Op: hpu.OpTimer, Cycles: 10, A: 700, Desc: hpu.Operation{Local: x.state, Length: 8, MatchBits: 2}}
		outside := put
		outside.Desc.Offset = aloneEntry
		nowhere := put
		nowhere.Desc.TargetNID = 4
		write := hpu.Action{Op: hpu.OpDMAToHostNB, Cycles: 10, Local: x.state, Len: 8, Offset: 8}
		wait := hpu.Action{Op: hpu.OpDMAWait, Cycles: 3000}
		last := put
		last.Desc.MatchBits, last.Desc.Offset = 3, 8
		h := x.begin(0, nil, put, timer, put, outside, nowhere, write, wait, write, last, wait)
		x.d.deposits = barriers{x}
		x.finish()
		require.Equal(t, []int64{0, h.results[1], hpu.NoSpace, hpu.Denied, hpu.Invalid, 0, 0, 0, 0, 0}, h.results)
		require.GreaterOrEqual(t, h.results[1], int64(0))
		ns := sim.Nanosecond
		landed := h.asked[7] + sim.NewRate(64, 1).Time(8) + 250*ns
		require.Equal(t, []sim.Time{10 * ns, 720 * ns, landed}, []sim.Time{x.left[0].at, x.left[1].at, x.left[2].at})
		require.Equal(t, []uint64{1, 2, 3}, []uint64{x.left[0].bits, x.left[1].bits, x.left[2].bits})
	})
}

// barriers is of deposit what lets go on who waits for writes.
type barriers struct{ x *actStage }

func (d barriers) wrote(in *inbound, _ int) {
	d.x.wrote(in, 0)
	for _, b := range in.barriers {
		b.issue.in = nil
		d.x.post(d.x.now(), kindIssue, 0, b.issue)
	}
	in.barriers = in.barriers[:0]
}

// A handler that gets something goes on when all of it is in HPU memory, and is
// told of a refusal; what its entry waits for is complete with the reply's
// record. A handler that has ended meanwhile is left alone, and so is its
// memory's next user.
func TestActWaitsForReplies(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		for _, c := range []struct {
			fail portals.FailType
			came uint64
			gone bool
			want []int64
		}{
			{portals.NIOK, 100, false, []int64{hpu.OK}},
			{portals.NISegv, 100, false, []int64{hpu.Denied}},
			{portals.NIOK, 99, false, []int64{hpu.Denied}}, // the entry had no more
			{portals.NIOK, 100, true, nil},
		} {
			x := newActStage(t, e, module, 1)
			get := hpu.Action{Op: hpu.OpGetFromDevice, Cycles: 7, Desc: hpu.Operation{Local: x.state + 64, Length: 100, TargetNID: 2, Options: optCompleteEntry}}
			h := x.begin(0, nil, get)
			data := []byte("what was there")
			x.post(sim.Microsecond, kindWaiting, 0, func() {
				require.Len(t, x.left, 1)
				require.Equal(t, portals.OpGet, x.left[0].kind)
				require.True(t, x.d.requests.awaited(1))
				if c.gone {
					h.r.generation++
				}
				x.d.requests.answered(1, 90, append(data, data...), 200)
				x.d.requests.answered(1, 0, data, 100)
				require.Empty(t, h.results)
				x.d.requests.answerThere(1, c.came, c.fail)
				require.Equal(t, c.want, h.results)
				require.False(t, x.d.requests.awaited(1))
				require.Equal(t, 1, h.in.open.operations)
				h.in.open.held = true
				x.d.requests.replied(1, 100, c.fail)
				require.Zero(t, h.in.open.operations)
				require.Equal(t, uint64(100), h.in.open.out.Delivered)
				require.Equal(t, c.fail, h.in.open.out.Fail)
			})
			require.NoError(t, x.engine.Run())
			want := append(append(append([]byte(nil), data...), make([]byte, 90-len(data))...), data[:10]...)
			require.Equal(t, append(want, 0, 0, 0), h.bytes(64, 103), "not beyond what was asked for")
			require.Equal(t, []uint64{1}, x.d.requests.unused)
		}
	})
}

// Counters change, and are read, at the handler's own time, and messages are
// acknowledged then: once, and not as if nothing had been lost.
func TestActTakesEffectAtTheHandlersTime(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		x := newActStage(t, e, module, 1)
		ct, err := x.ni.CTAlloc()
		require.NoError(t, err)
		at := func(op hpu.Op, cycles int64, a, b uint64) hpu.Action {
			return hpu.Action{Op: op, CT: uint32(ct), Cycles: cycles, A: a, B: b, Local: x.state}
		}
		nobody := at(hpu.OpCTInc, 0, 1, 0)
		nobody.CT = 0
		h := x.begin(0, nil,
			at(hpu.OpCTInc, 500, 3, 0), at(hpu.OpCTGet, 500, 0, 0), at(hpu.OpCTInc, 0, 1, 1), nobody, at(hpu.OpCTSet, 500, 20, 4), at(hpu.OpAck, 500, 0, 0), at(hpu.OpAck, 0, 0, 0),
		)
		success := func() uint64 {
			v, err := x.ni.CTGet(ct)
			require.NoError(t, err)
			return v.Success
		}
		for _, look := range []struct {
			at   sim.Time
			want uint64
		}{{499, 0}, {501, 3}, {999, 13}, {1001, 13}, {1499, 13}, {1501, 20}} {
			x.post(look.at*sim.Nanosecond, kindWaiting, 0, func() { require.Equal(t, look.want, success(), "at %d ns", look.at) })
		}
		x.post(750*sim.Nanosecond, kindWaiting, 0, func() { require.NoError(t, x.ni.CTInc(ct, portals.CTEvent{Success: 10})) })
		x.post(1600*sim.Nanosecond, kindWaiting, 0, func() { h.in.lose(loss{cause: packetBufferFull}, 1, 8) })
		require.NoError(t, x.engine.Run())
		require.Equal(t, []int64{0, 0, hpu.Invalid, hpu.Invalid, 0, 0, hpu.Invalid}, h.results)
		require.Equal(t, uint64(13), binary.LittleEndian.Uint64(h.bytes(0, 8)), "the counter of that time")
		ack := x.iface.Port.NextOp()
		require.Equal(t, []any{portals.OpAck, portals.NIDropped}, []any{ack.Header.Kind, ack.Header.Fail})
		require.Nil(t, x.iface.Port.NextOp())
	})
}

// A write has the bytes of the call, even where somebody may change them before
// it lands. The bytes are not copied only under three conditions: they are in
// the handler's packet, the handler waits until they have landed, and it has
// requested nothing else.
func TestWritesInPlace(t *testing.T) {
	for _, c := range []struct {
		op            hpu.Op
		local, length uint32
		looks         bool
		how           string
		want          bool
	}{
		{hpu.OpDMAToHost, 1000, 100, false, Landed, true},
		{hpu.OpDMAToHost, 1050, 50, false, Landed, true},
		{hpu.OpDMAToHost, 1050, 51, false, Landed, false},
		{hpu.OpDMAToHost, 999, 10, false, Landed, false},
		{hpu.OpDMAToHost, 1050, 1<<32 - 1, false, Landed, false},
		{hpu.OpDMAToHost, 1000, 100, true, Landed, false},
		{hpu.OpDMAToHost, 1000, 100, false, Initiated, false},
		{hpu.OpDMAToHostNB, 1000, 100, false, Landed, false},
		{hpu.OpDMAToHostPosted, 1000, 100, false, Landed, false},
		{hpu.OpDMAFromHost, 1000, 100, false, Landed, false},
		{hpu.OpHostWrite, 1000, 8, false, Landed, false},
	} {
		r := run{packet: 1000, filled: 100, looks: c.looks}
		require.Equal(t, c.want, r.inPlace(c.op, c.how, c.local, c.length), "%+v", c)
	}
}

// An operation that a handler did not wait for may change the packet of the
// next handler in its context. A write of the next handler still has the bytes
// of the call.
func TestWriteWhileAnEarlierHandlersReadIsOnItsWay(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		x := newActStage(t, e, module, 1)
		h := x.begin(0, nil, hpu.Action{Op: hpu.OpDMAFromHostNB, Len: 64})
		h.actions[0].Local = h.local(0)
		next := func(op hpu.Op, offset uint64) {
			require.False(t, h.r.active)
			r := h.r
			r.active, r.looks, r.handles, r.packet, r.filled = true, false, r.handles[:0], h.local(0), 64
			r.generation++
			for i := range h.bytes(0, 64) {
				h.bytes(0, 64)[i] = 7
			}
			h.actions = append(h.actions, hpu.Action{Op: op, Local: h.local(0), Len: 64, Offset: offset})
			h.act()
		}
		x.post(300*sim.Nanosecond, kindWaiting, 0, func() { next(hpu.OpDMAToHost, 1024) })
		x.post(490*sim.Nanosecond, kindWaiting, 0, func() { require.Equal(t, int32(1), h.r.late) })
		x.post(900*sim.Nanosecond, kindWaiting, 0, func() {
			require.Zero(t, h.r.late)
			next(hpu.OpDMAToHost, 2048)
		})
		x.finish()
		require.Equal(t, bytes.Repeat([]byte{7}, 64), x.hostMemory(h)[1024:][:64])
		require.Equal(t, bytes.Repeat([]byte{7}, 64), x.hostMemory(h)[2048:][:64])
	})
}
