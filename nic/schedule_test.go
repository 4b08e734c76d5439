package nic

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// part is what a handler does between two suspensions: cycles of a nanosecond
// each, then a wait; yield: it offers its core instead.
type part struct {
	cycles int64
	wait   sim.Time
	yield  bool
}

// ran is a segment as it was executed.
type ran struct {
	in         *inbound
	packet     int32
	kind       handlerKind
	core       int
	start, end sim.Time
	first      bool
}

// stage is a schedule alone: handlers are scripts, and what follows them only notes what comes.
type stage struct {
	s         schedule
	t         rapid.TB
	parts     func(t task) []part
	done      map[*run]int // parts of the handler in a context
	log       []ran
	completed []*inbound
	ends      int
}

const (
	kindPacketComes sim.Kind = kindsOfReceive + 0x80 + iota
	kindWaitEnds
)

func newStage(t rapid.TB, spec HPUSpec, pools Pools) *stage {
	x := &stage{t: t, done: map[*run]int{}}
	eng := sim.New(1)
	spec.Clock = 1e9
	spec.WaitingHandlers = 1 << 20
	e := &env{
		core:   new(Core),
		engine: eng, id: eng.Add("stage", x), spec: &Spec{PacketBuffer: 1 << 30}, hpu: &spec, fabric: &fabric.Spec{MTU: 64}, report: new(Report),
	}
	x.s = schedule{env: e, act: x, next: x}
	x.s.build(pools)
	return x
}

// message is one of so many packets of 64 B whose payload handlers, and perhaps
// its completion handler, are to run.
func (x *stage) message(packets int, completes bool) *inbound {
	return &inbound{delivered: delivered{
		frame: &Frame{Data: make([]byte, 64*packets), Length: 64 * packets, MTU: 64, Packets: packets}, d: &portals.Delivery{MLength: uint64(64 * packets)},
		phase: phaseHandlers, left: int32(packets), completes: completes, handlers: &installed{memory: &Memory{name: "script"}},
	}}
}

func (x *stage) comes(at sim.Time, in *inbound, i int) { x.s.post(at, kindPacketComes, uint64(i), in) }

// Handle passes events on; after each, no processor may be idle that somebody wants.
func (x *stage) Handle(e *sim.Event) {
	switch e.Kind {
	case kindPacketComes:
		x.s.packet(e.P.(*inbound), int(e.A))
	case kindWaitEnds:
		x.s.resumable(e.P.(*run), 0)
	default:
		x.s.handle(e)
	}
	waiting := 0
	for _, p := range x.s.pools {
		waiting += p.tasks.len()
		for i := range p.cores {
			p.cores[i].check(func(format string, args ...any) { x.t.Fatalf("at %v: "+format, append([]any{x.s.now()}, args...)...) })
		}
	}
	if h := x.s.homes; h != nil {
		waiting += h.tasks.len()
	}
	if o := x.s.tenants; o != nil {
		waiting += o.waiting
	}
	require.Equal(x.t, waiting, int(x.s.waiting))
}

func (x *stage) segment(r *run) hpu.Status {
	parts, k := x.parts(r.task), x.done[r]
	x.done[r] = k + 1
	r.cycles = r.charged + parts[k].cycles
	x.log = append(x.log, ran{r.task.in, r.task.packet, r.task.kind, int(r.core.index), x.s.now(), r.at(r.cycles), k == 0})
	if k+1 == len(parts) {
		return hpu.Idle
	}
	r.wait = blockedOn{op: hpu.OpDMAFromHost}
	if parts[k].yield {
		r.wait.op = hpu.OpYield
	}
	return hpu.Blocked
}

func (x *stage) execute(r *run) hpu.Status {
	x.done[r] = 0
	return x.segment(r)
}

func (x *stage) resume(r *run) hpu.Status { return x.segment(r) }

func (x *stage) changed(*Memory) {}

func (x *stage) suspended(r *run) (int64, bool) {
	wait := x.parts(r.task)[x.done[r]-1].wait
	if wait == 0 {
		return 0, true
	}
	x.s.post(x.s.now()+wait, kindWaitEnds, 0, r)
	return 0, false
}

func (x *stage) packet(*inbound, int) { x.t.Fatal("a packet of a payload handler went on") }

func (x *stage) missing(*inbound, int) { x.t.Fatal("a missing packet went on") }

func (x *stage) complete(in *inbound) { x.completed = append(x.completed, in) }

func (x *stage) ended(*run) hpu.Outcome {
	x.ends++
	return hpu.Outcome{Code: hpu.Success}
}

// The stage alone, with handlers that do not wait, is the queue of c servers of
// the textbook: a handler begins when it has come and a server is free, in the
// order of arrival (Kiefer and Wolfowitz, 1955).
func TestScheduleIsAQueueOfServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		servers := rapid.IntRange(1, 5).Draw(t, "HPUs")
		x := newStage(t, HPUSpec{Cores: servers, Contexts: rapid.IntRange(1, 3).Draw(t, "contexts"), Dispatch: Delay{Fixed: sim.Time(rapid.IntRange(0, 3).Draw(t, "dispatch"))}}, nil)
		n := rapid.IntRange(1, 60).Draw(t, "packets")
		in := x.message(n, false)
		takes := rapid.SliceOfN(rapid.Int64Range(0, 40), n, n).Draw(t, "cycles")
		x.parts = func(k task) []part { return []part{{cycles: takes[k.packet]}} }
		free := make([]sim.Time, servers)
		at := sim.Time(0)
		var want []sim.Time
		for i := range n {
			at += sim.Time(rapid.IntRange(0, 20_000).Draw(t, "pause"))
			x.comes(at, in, i)
			slices.Sort(free)
			begins := max(at, free[0]) + x.s.hpu.Dispatch.Fixed
			free[0] = begins + sim.Time(takes[i])*sim.Nanosecond
			want = append(want, begins)
		}
		require.NoError(t, x.s.engine.Run())
		require.Len(t, x.log, n)
		for i, r := range x.log {
			require.Equal(t, want[r.packet], r.start, "packet %d", i)
		}
		require.Equal(t, []*inbound{in}, x.completed)
	})
}

// Handlers that wait and yield, in several pools, with completion handlers:
// everything that has come is run once and to its end, a processor runs one
// segment at a time and holds no more handlers than it has contexts, tasks of a
// pool begin in the order in which they came, and completion handlers after the
// last payload handler.
func TestScheduleLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		contexts := rapid.IntRange(1, 3).Draw(t, "contexts")
		pools := Pools{"r5": {Kind: Firmware, Cores: 2, Contexts: contexts, Invocation: 7 * sim.Nanosecond}, "cells": {Kind: Hardware, Latency: 12 * sim.Nanosecond, Depth: 3}}
		x := newStage(t, HPUSpec{Cores: rapid.IntRange(1, 3).Draw(t, "HPUs"), Contexts: contexts}, pools)
		scripts := map[string][]part{}
		x.parts = func(k task) []part { return scripts[fmt.Sprintf("%p %v %d", k.in, k.kind, k.packet)] }
		var messages []*inbound
		handlers := 0
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			in := x.message(rapid.IntRange(1, 8).Draw(t, "packets"), rapid.Bool().Draw(t, "completes"))
			for kind := range in.handlers.pools {
				in.handlers.pools[kind] = uint8(rapid.IntRange(0, 2).Draw(t, "pool"))
			}
			messages = append(messages, in)
			handlers += int(in.left)
			if in.completes {
				scripts[fmt.Sprintf("%p %v %d", in, completionHandler, 0)] = drawParts(t)
				handlers++
			}
			for i := range int(in.left) {
				scripts[fmt.Sprintf("%p %v %d", in, payloadHandler, i)] = drawParts(t)
				x.comes(sim.Time(rapid.IntRange(0, 60).Draw(t, "ns"))*sim.Nanosecond, in, i)
			}
		}
		require.NoError(t, x.s.engine.Run())
		require.ElementsMatch(t, messages, x.completed)
		require.Equal(t, handlers, x.ends)
		require.Zero(t, x.s.buffered)
		byCore := map[int][]ran{}
		for _, r := range x.log {
			before := byCore[r.core]
			if len(before) > 0 {
				require.GreaterOrEqual(t, r.start, before[len(before)-1].end, "processor %d", r.core)
			}
			byCore[r.core] = append(before, r)
			if r.kind == completionHandler && r.first {
				for _, p := range x.log {
					require.False(t, p.in == r.in && p.kind == payloadHandler && p.end > r.start, "a completion handler before the end of a payload handler")
				}
			}
		}
	})
}

// A handler that waits by yielding for another that waits for something sees
// its end, also where rounds take no time: it looks again after what the pool
// takes for a handler, or, where that is nothing, after the round's cycles.
func TestWhoYieldsLooksAgain(t *testing.T) {
	const until, round = 100 * sim.Nanosecond, 2
	for name, c := range map[string]struct {
		spec  HPUSpec
		pools Pools
		begin sim.Time // when who looks begins
		first sim.Time // what a first segment takes: then the wait of the other begins
		every sim.Time // between two looks
	}{
		"hardware":                       {HPUSpec{}, Pools{"p": {Kind: Hardware, Latency: 8 * sim.Nanosecond, Depth: 2}}, 4 * sim.Nanosecond, 8 * sim.Nanosecond, 8 * sim.Nanosecond},
		"hardware that takes no time":    {HPUSpec{}, Pools{"p": {Kind: Hardware, Depth: 2}}, 0, 0, round * sim.Nanosecond},
		"firmware of two cores":          {HPUSpec{}, Pools{"p": {Kind: Firmware, Cores: 2, Contexts: 1, Invocation: 30 * sim.Nanosecond}}, 0, 30 * sim.Nanosecond, 30 * sim.Nanosecond},
		"firmware of two contexts":       {HPUSpec{}, Pools{"p": {Kind: Firmware, Cores: 1, Contexts: 2, Invocation: 30 * sim.Nanosecond}}, 30 * sim.Nanosecond, 30 * sim.Nanosecond, 30 * sim.Nanosecond},
		"HPUs that take no time":         {HPUSpec{Cores: 2, Contexts: 1, Charge: ChargeNothing}, nil, 0, 0, round * sim.Nanosecond},
		"an HPU that takes no time":      {HPUSpec{Cores: 1, Contexts: 2, Charge: ChargeNothing}, nil, 0, 0, round * sim.Nanosecond},
		"HPUs, whose rounds take cycles": {HPUSpec{Cores: 2, Contexts: 1, Charge: ChargeCycles}, nil, 0, round * sim.Nanosecond, round * sim.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			if c.spec.Cores == 0 {
				c.spec.Cores, c.spec.Contexts = 1, 1
			}
			x := newStage(t, c.spec, c.pools)
			in := x.message(2, false)
			for kind := range in.handlers.pools {
				in.handlers.pools[kind] = uint8(len(c.pools))
			}
			over, looks := sim.Time(-1), []sim.Time(nil)
			x.parts = func(k task) []part {
				switch {
				case k.packet == 0: // what is waited for
					if x.s.now() >= until {
						over = x.s.now()
					}
					return []part{{cycles: round, wait: until}, {}}
				case len(looks) > 1000:
					t.Fatalf("looks at %v, and no end", looks[len(looks)-1])
				}
				looks = append(looks, x.s.now())
				parts := make([]part, len(looks)) // it ends
				if over < 0 {
					parts = append(parts, part{})
				}
				parts[len(looks)-1] = part{cycles: round, yield: true}
				return parts
			}
			x.comes(0, in, 0)
			x.comes(0, in, 1)
			require.NoError(t, x.s.engine.Run())
			require.Equal(t, []*inbound{in}, x.completed)
			require.Equal(t, c.first+until, over)
			require.Equal(t, []sim.Time{c.begin, c.begin + c.first}, looks[:2], "a second one at the same moment is behind what others do at it")
			for i := 2; i < len(looks); i++ {
				require.Equal(t, c.every, looks[i]-looks[i-1], "%v", looks)
			}
			last := looks[len(looks)-1]
			require.True(t, last >= over && last <= over+c.every, "%v", looks)
		})
	}
}

func drawParts(t *rapid.T) (parts []part) {
	for range rapid.IntRange(1, 4).Draw(t, "segments") {
		parts = append(parts, part{
			cycles: rapid.Int64Range(0, 20).Draw(t, "cycles"), yield: rapid.Bool().Draw(t, "yields"),
			wait: sim.Time(rapid.IntRange(0, 15).Draw(t, "waits")) * sim.Nanosecond,
		})
	}
	return parts
}

// An event of another stage is a mistake of the program.
func TestScheduleKnowsItsEvents(t *testing.T) {
	var s schedule
	require.Panics(t, func() { s.handle(&sim.Event{Kind: kindsOfSchedule + 77}) })
}
