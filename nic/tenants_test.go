package nic

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// share makes a stage's HPUs those of tenants, with user ids 1, 2 and so on.
func (x *stage) share(arbiter string, list ...Tenant) {
	all := Tenants{}
	for i, o := range list {
		o.UID = uint32(i + 1)
		all[fmt.Sprintf("tenant%d", i)] = o
	}
	x.s.hpu.Arbiter = arbiter
	x.s.tenants = newTenants(x.s.env, all)
}

// crowd is a message of each tenant, all of whose packets come at the beginning.
func (x *stage) crowd(tenants, packets int) (list []*inbound) {
	for i := range tenants {
		in := x.message(packets, false)
		in.handlers.memory.tenant = uint16(i + 1)
		list = append(list, in)
		for k := range packets {
			x.comes(0, in, k)
		}
	}
	return list
}

// shares are the times for which tenants had HPUs before a moment, as parts of all,
// and how long all had them.
func (x *stage) shares(until sim.Time, tenants int) (of []float64, all float64) {
	of = make([]float64, tenants)
	for _, r := range x.log {
		if d := min(r.end, until) - r.start; d > 0 {
			of[r.in.handlers.memory.tenant-1] += float64(d)
			all += float64(d)
		}
	}
	for i := range of {
		of[i] /= all
	}
	return of, all
}

// With arbiter fifo all is as without tenants, whatever the handlers do.
func TestFIFOIsTheOrderOfArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		contexts, cores := rapid.IntRange(1, 3).Draw(t, "contexts"), rapid.IntRange(1, 4).Draw(t, "HPUs")
		spec := HPUSpec{Cores: cores, Contexts: contexts}
		if cores == 4 && rapid.Bool().Draw(t, "homes") {
			spec.Home, spec.Clusters, spec.ClusterTasks = HomeMessage, 2, rapid.IntRange(0, 3).Draw(t, "cluster tasks")
		}
		type come struct {
			at      sim.Time
			message int
		}
		var comes []come
		var scripts [][]part
		for range rapid.IntRange(1, 40).Draw(t, "packets") {
			comes = append(comes, come{sim.Time(rapid.IntRange(0, 60).Draw(t, "ns")) * sim.Nanosecond, rapid.IntRange(0, 3).Draw(t, "message")})
			scripts = append(scripts, drawParts(t))
		}
		var logs [2][]string
		for with := range logs {
			x := newStage(t, spec, nil)
			if with == 1 {
				x.share(FIFO, Tenant{Weight: 5}, Tenant{Weight: 1}, Tenant{Weight: 9})
			}
			var messages []*inbound
			for i := range 4 {
				in := x.message(len(comes), false)
				in.handlers.memory.tenant = uint16(i) * uint16(with)
				in.flow = int32(i)
				messages = append(messages, in)
			}
			x.parts = func(k task) []part { return scripts[k.packet] }
			for i, c := range comes {
				x.comes(c.at, messages[c.message], i)
			}
			require.NoError(t, x.s.engine.Run())
			for _, r := range x.log {
				logs[with] = append(logs[with], fmt.Sprint(r.packet, r.core, r.start, r.end))
			}
		}
		require.Equal(t, logs[0], logs[1])
	})
}

// Tenants whose handlers take very different times have the HPUs by their weights,
// as long as all want them: within a handler on each. No HPU is idle.
func TestWeightsAreShares(t *testing.T) {
	for _, arbiter := range []string{WFQ, WLBVT} {
		rapid.Check(t, func(t *rapid.T) {
			cores := rapid.IntRange(1, 12).Draw(t, "HPUs")
			x := newStage(t, HPUSpec{Cores: cores, Contexts: 1}, nil)
			const packets = 2000
			n := rapid.IntRange(2, 4).Draw(t, "tenants")
			var list []Tenant
			weights, longest, least := 0, int64(0), int64(1<<62)
			takes := make([]int64, n)
			for i := range n {
				list = append(list, Tenant{Weight: rapid.IntRange(1, 9).Draw(t, "weight")})
				weights += list[i].Weight
				takes[i] = rapid.Int64Range(1, 300).Draw(t, "cycles")
				longest, least = max(longest, takes[i]), min(least, takes[i]*packets)
			}
			x.share(arbiter, list...)
			x.crowd(n, packets)
			x.parts = func(k task) []part { return []part{{cycles: takes[k.in.handlers.memory.tenant-1]}} }
			require.NoError(t, x.s.engine.Run())
			until := sim.Time(least) * sim.Nanosecond / sim.Time(cores) // nobody has run out
			slack := float64(2*longest*int64(cores)) / float64(least)
			shares, all := x.shares(until, n)
			require.Equal(t, float64(until)*float64(cores), all, "an idle HPU")
			for i, got := range shares {
				want := float64(list[i].Weight) / float64(weights)
				require.InDelta(t, want, got, slack+0.001, "%s: tenant %d", arbiter, i)
			}
		})
	}
}

// No tenant has more handlers under way than it may: than its limit, or with wlbvt
// than its part while others want HPUs, and everything that has come is run.
func TestLimitsOfTenants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores, contexts := rapid.IntRange(1, 8).Draw(t, "HPUs"), rapid.IntRange(1, 2).Draw(t, "contexts")
		x := newStage(t, HPUSpec{Cores: cores, Contexts: contexts}, nil)
		arbiter := rapid.SampledFrom(Arbiters()[1:]).Draw(t, "arbiter")
		list := []Tenant{
			{Weight: rapid.IntRange(1, 5).Draw(t, "weight"), Handlers: rapid.IntRange(0, 3).Draw(t, "limit")},
			{Weight: rapid.IntRange(1, 5).Draw(t, "weight"), Handlers: rapid.IntRange(0, 3).Draw(t, "limit")},
		}
		x.share(arbiter, list...)
		scripts := map[*inbound][]part{}
		most := make([]int, 2)
		x.parts = func(k task) []part {
			for i := range most {
				o := &x.s.tenants.list[i+1]
				most[i] = max(most[i], o.handlers)
				require.True(t, o.Handlers == 0 || o.handlers <= o.Handlers, "tenant %d has %d", i, o.handlers)
			}
			x.s.tenants.check(t.Fatalf)
			return scripts[k.in]
		}
		var messages []*inbound
		for i := range 2 {
			for range rapid.IntRange(1, 4).Draw(t, "messages") {
				in := x.message(rapid.IntRange(1, 10).Draw(t, "packets"), false)
				in.handlers.memory.tenant = uint16(i + 1)
				messages, scripts[in] = append(messages, in), drawParts(t)
				for k := range int(in.left) {
					x.comes(sim.Time(rapid.IntRange(0, 60).Draw(t, "ns"))*sim.Nanosecond, in, k)
				}
			}
		}
		require.NoError(t, x.s.engine.Run())
		require.ElementsMatch(t, messages, x.completed)
		for i := range x.s.tenants.list {
			o := &x.s.tenants.list[i]
			require.Zero(t, o.handlers+o.waiting)
			require.EqualValues(t, -1, o.since)
		}
	})
}

// A tenant that comes late gets its part at once, not all HPUs until it has caught
// up, and one whose part is a quarter never has more than two of eight HPUs under
// wlbvt while the other wants them.
func TestLateTenants(t *testing.T) {
	for _, arbiter := range []string{WFQ, WLBVT} {
		x := newStage(t, HPUSpec{Cores: 8, Contexts: 1}, nil)
		x.share(arbiter, Tenant{Weight: 3}, Tenant{Weight: 1})
		first, late := x.message(4000, false), x.message(1000, false)
		first.handlers.memory.tenant, late.handlers.memory.tenant = 1, 2
		for k := range 4000 {
			x.comes(0, first, k)
		}
		const comes = 10 * sim.Microsecond
		for k := range 1000 {
			x.comes(comes, late, k)
		}
		under := 0
		x.parts = func(k task) []part {
			if k.in == late && x.s.tenants.list[1].waiting > 0 {
				under = max(under, x.s.tenants.list[2].handlers)
			}
			return []part{{cycles: 50}}
		}
		require.NoError(t, x.s.engine.Run())
		had := sim.Time(0)
		for _, r := range x.log {
			if r.in == late && r.start < 2*comes {
				had += min(r.end, 2*comes) - r.start
			}
		}
		require.InDelta(t, 0.25, float64(had)/float64(8*comes), 0.02, arbiter)
		if arbiter == WLBVT {
			require.Equal(t, 2, under)
		}
	}
}

// A short write waits for the piece of another tenant on the bus, and for one that
// waits; in the order of arrival it waits for all that came before it.
func TestTurnsBoundTheWait(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		took := func(arbiter string, fragment sim.Size) sim.Time {
			x := newActStage(t, e, module, 2)
			x.hpu.DMABytes = 1 << 20
			if arbiter != FIFO {
				x.hpu.Arbiter, x.hpu.Fragment, x.hpu.DMABytes = arbiter, fragment, 2048
				x.d.dma.turns = newTurns(x.hpu, newTenants(&x.env, Tenants{"long": {UID: 1, Weight: 1, DMABytes: 0}}))
				x.d.dma.turns.lines[1].most = 1 << 20
			}
			long := hpu.Action{Op: hpu.OpDMAToHostNB, Len: 2000}
			a := x.begin(0, nil, long, long, long, hpu.Action{Op: hpu.OpDMAWait, A: 0}, hpu.Action{Op: hpu.OpDMAWait, A: 1}, hpu.Action{Op: hpu.OpDMAWait, A: 2})
			a.in.handlers = &installed{memory: &Memory{name: "long", program: x.program, tenant: 1}}
			for i := range 3 {
				a.actions[i].Local = a.local(0)
			}
			b := x.begin(10*sim.Nanosecond, nil, hpu.Action{Op: hpu.OpDMAToHost, Len: 64})
			b.actions[0].Local = b.local(0)
			x.finish()
			return b.ended[0] - 10*sim.Nanosecond
		}
		D, L := sim.NewRate(64, 1).Time, 250*sim.Nanosecond
		require.Equal(t, D(6000)-10*sim.Nanosecond+D(64)+L, took(FIFO, 0))
		for _, arbiter := range []string{RoundRobin, WFQ, WLBVT} {
			require.LessOrEqual(t, took(arbiter, 64), 2*D(64)+D(64)+L, arbiter)
		}
	})
}

// One put of a tenant waits for one of the other's, not for all that came before it.
func TestTenantsTakeTurnsAtTheEgress(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		left := func(arbiter string) (place int) {
			x := newActStage(t, e, module, 8)
			x.room, x.takes, x.hpu.Arbiter = 1, sim.Microsecond, arbiter
			x.d.requests.tenants = newTenants(&x.env, Tenants{"a": {UID: 1, Weight: 1}, "b": {UID: 2, Weight: 1}})
			x.d.dma.turns = newTurns(x.hpu, x.d.requests.tenants)
			for k := range 8 {
				tenant := 1 + k/7 // the last is of another
				h := x.begin(sim.Time(k), nil, hpu.Action{Op: hpu.OpPutFromDevice, Desc: hpu.Operation{Local: x.state, Length: 8, TargetNID: 2, MatchBits: uint64(k)}})
				h.in.handlers = &installed{memory: &Memory{name: "x", program: x.program, tenant: uint16(tenant)}}
			}
			x.finish()
			return slices.IndexFunc(x.left, func(d departed) bool { return d.bits == 7 })
		}
		require.Equal(t, 7, left(FIFO))
		require.LessOrEqual(t, left(WFQ), 2)
	})
}

// On a busy bus tenants move bytes by their weights, whatever the length of their
// operations.
func TestTurnsAreByWeight(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		x := newActStage(t, e, module, 2)
		x.hpu.Arbiter, x.hpu.Fragment, x.hpu.DMABytes = WFQ, 64, 256
		x.d.dma.turns = newTurns(x.hpu, newTenants(&x.env, Tenants{"a": {UID: 1, Weight: 3}, "b": {UID: 2, Weight: 1}}))
		x.hpu.DMAHandles = 64
		var moved [2]int64
		for i, n := range []uint32{1000, 192} {
			x.d.dma.turns.lines[i+1].most = 1 << 20
			var list []hpu.Action
			for range 40 {
				list = append(list, hpu.Action{Op: hpu.OpDMAToHostNB, Len: n})
			}
			for k := range 40 {
				list = append(list, hpu.Action{Op: hpu.OpDMAWait, A: uint64(k)})
			}
			h := x.begin(0, nil, list...)
			h.in.handlers = &installed{memory: &Memory{name: "x", program: x.program, tenant: uint16(i + 1)}}
			h.before = func(_ int, a *hpu.Action) { a.Local = h.local(0) }
			x.post(1750*sim.Nanosecond, kindWaiting, 0, func() { moved[i] = int64(40-h.in.underway) * int64(n) })
		}
		x.finish()
		require.InDelta(t, 3, float64(moved[0])/float64(moved[1]), 0.3, "%v", moved)
	})
}

// A tenant that has all the commands that it may have does not keep another from its
// own, and has them again when they have ended.
func TestCommandsOfTenants(t *testing.T) {
	withEngine(t, func(e hpu.Engine, module []byte) {
		x := newActStage(t, e, module, 3)
		x.spec.HandlerCommands = 3
		x.d.requests.tenants = newTenants(&x.env, Tenants{"few": {UID: 1, Weight: 1, HandlerCommands: 2}, "other": {UID: 2, Weight: 1}})
		later := hpu.Action{Op: hpu.OpTimer, A: 500, Desc: hpu.Operation{Local: x.state, Length: 8}}
		a := x.begin(0, nil, later, later, later)
		b := x.begin(100*sim.Nanosecond, nil, later, later)
		again := x.begin(2*sim.Microsecond, nil, later)
		for tenant, list := range [][]*hand{{a, again}, {b}} {
			for _, h := range list {
				h.in.handlers = &installed{memory: &Memory{name: "x", program: x.program, tenant: uint16(tenant + 1)}}
			}
		}
		x.finish()
		require.Equal(t, hpu.NoSpace, a.results[2])
		require.GreaterOrEqual(t, b.results[0], hpu.OK)
		require.Equal(t, hpu.NoSpace, b.results[1], "of the device")
		require.GreaterOrEqual(t, again.results[0], hpu.OK)
		for i := range x.d.requests.tenants.list {
			require.Zero(t, x.d.requests.tenants.list[i].commands)
		}
	})
}

// A tenant one of whose handlers has waited for long has no credit from that time:
// when it floods the HPUs it has its part of them, not all until it has caught up.
func TestWaitingIsNoCredit(t *testing.T) {
	const floods, looks = 20 * sim.Microsecond, 10 * sim.Microsecond
	for _, arbiter := range []string{WFQ, WLBVT} {
		for _, cores := range []int{1, 2, 8} {
			x := newStage(t, HPUSpec{Cores: cores, Contexts: 2}, nil)
			x.share(arbiter, Tenant{Weight: 1}, Tenant{Weight: 1})
			sleeper, flood, victim := x.message(1, false), x.message(1000*cores, false), x.message(2000*cores, false)
			sleeper.handlers.memory.tenant, flood.handlers.memory.tenant, victim.handlers.memory.tenant = 1, 1, 2
			x.parts = func(k task) []part {
				if k.in == sleeper {
					return []part{{cycles: 1, wait: floods + 2*looks}, {cycles: 1}}
				}
				return []part{{cycles: 50}}
			}
			x.comes(0, sleeper, 0)
			for k := range 2000 * cores {
				x.comes(0, victim, k)
			}
			for k := range 1000 * cores {
				x.comes(floods, flood, k)
			}
			require.NoError(t, x.s.engine.Run())
			had := sim.Time(0)
			for _, r := range x.log {
				if r.in == flood && r.start < floods+looks {
					had += min(r.end, floods+looks) - r.start
				}
			}
			require.Less(t, float64(had)/float64(looks)/float64(cores), 0.51, "%s, %d HPUs", arbiter, cores)
			if arbiter == WFQ {
				require.Greater(t, float64(had)/float64(looks)/float64(cores), 0.49, "%d HPUs", cores)
			}
		}
	}
}

// Handlers that have waited, and could go on, have no more of an HPU than their
// tenant's part: others begin before them. What a tenant is owed because the contexts
// were taken it gets later.
func TestHandlersGoOnInTheOrderOfTenants(t *testing.T) {
	const until = 100 * sim.Microsecond
	waits := slices.Repeat([]part{{cycles: 20, wait: 10 * sim.Nanosecond}}, 5000)
	for _, arbiter := range []string{WFQ, WLBVT} {
		for _, cores := range []int{1, 2, 3} {
			for _, weight := range []int{1, 3} {
				x := newStage(t, HPUSpec{Cores: cores, Contexts: 3}, nil)
				x.share(arbiter, Tenant{Weight: 1, Handlers: 2 * cores}, Tenant{Weight: weight})
				x.crowd(2, 4000)
				x.parts = func(k task) []part {
					if k.in.handlers.memory.tenant == 2 {
						return []part{{cycles: 100}}
					}
					return waits
				}
				require.NoError(t, x.s.engine.RunUntil(until))
				of, _ := x.shares(until, 2)
				require.LessOrEqual(t, of[0]*float64(weight+1), 1.05, "%s, %d HPUs, weight %d", arbiter, cores, weight)
			}
		}
	}
}

// What an HPU waits for a handler (hpu.dispatch) counts: many short handlers of a
// tenant have no more of it than its part.
func TestDispatchCounts(t *testing.T) {
	const dispatch, until = 16, 100 * sim.Microsecond
	for _, arbiter := range []string{WFQ, WLBVT} {
		x := newStage(t, HPUSpec{Cores: 2, Contexts: 1, Dispatch: Delay{Fixed: dispatch * sim.Nanosecond}}, nil)
		x.share(arbiter, Tenant{Weight: 1}, Tenant{Weight: 3})
		x.crowd(2, 8000)
		cycles := []int64{0, 1, 500}
		x.parts = func(k task) []part { return []part{{cycles: cycles[k.in.handlers.memory.tenant]}} }
		require.NoError(t, x.s.engine.RunUntil(until))
		had := []int64{0, 0, 0}
		for _, r := range x.log {
			i := r.in.handlers.memory.tenant
			had[i] += dispatch + cycles[i]
		}
		require.InDelta(t, 3, float64(had[2])/float64(had[1]), 0.1, arbiter)
	}
}

// The time that a tenant has had ends now, also while its handlers run.
func TestTimesOfTenantsEndNow(t *testing.T) {
	x := newStage(t, HPUSpec{Cores: 2, Contexts: 1}, nil)
	x.share(WFQ, Tenant{Weight: 1}, Tenant{Weight: 1})
	x.crowd(2, 1)
	x.parts = func(task) []part { return []part{{cycles: 100, wait: 50 * sim.Nanosecond}, {cycles: 100}} }
	for _, c := range [][2]sim.Time{{30, 30}, {100, 100}, {140, 100}, {170, 120}, {300, 200}} {
		require.NoError(t, x.s.engine.RunUntil(c[0]*sim.Nanosecond))
		for _, o := range (&NIC{schedule: x.s}).Tenants()[1:] {
			require.Equal(t, c[1]*sim.Nanosecond, o.Time, "%s at %v ns", o.Name, int64(c[0]))
		}
	}
}

// Completion handlers may always wait. Those of one tenant, however many, do not take
// the places of another, which has room in its own budget.
func TestCompletionHandlersTakeNoPlaces(t *testing.T) {
	x := newStage(t, HPUSpec{Cores: 1, Contexts: 1}, nil)
	x.s.hpu.WaitingHandlers = 4
	x.share(WFQ, Tenant{Weight: 1, WaitingHandlers: 2}, Tenant{Weight: 1})
	x.parts = func(task) []part { return []part{{cycles: 50}} }
	for range 10 {
		in := x.message(1, false)
		in.handlers.memory.tenant = 1
		x.s.completion(in)
	}
	require.True(t, x.s.queueFull(&Memory{tenant: 1}))
	require.False(t, x.s.queueFull(&Memory{tenant: 2}))
}

// A piece takes the way to memory that its operation takes, and lies behind the
// pieces before it.
func TestPiecesTakeTheWayOfTheirOperation(t *testing.T) {
	d := &act{env: &env{core: new(Core)}}
	o := &dmaOp{access: host.Access{Addr: 1000, Length: 100, Ports: 2, Flow: 7}, dmaState: dmaState{sent: 96}}
	a := o.pieceOf(d, 32)
	require.Equal(t, []any{uint8(2), uint64(7), uint64(1064), 32}, []any{a.Ports, a.Flow, a.Addr, a.Length})
}
