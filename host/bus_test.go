package host_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/sim"
)

const (
	latency = 250 * sim.Nanosecond
	pause   = 3 * sim.Microsecond
)

// buses are the kinds of buses: one per direction, one for both, the memory
// controller, and no charge for bytes.
func buses() map[string]host.BusSpec {
	b := host.BusSpec{Latency: latency, Bandwidth: sim.NewRate(15, 1), Charge: host.ChargeFull, FullDuplex: true}
	half, shared, bare := b, b, b
	half.FullDuplex = false
	shared.SharedMemory = true
	bare.Charge = host.ChargeLatency
	return map[string]host.BusSpec{"full duplex": b, "half duplex": half, "shared": shared, "latency": bare}
}

func drawUse(t *rapid.T, space *host.AddressSpace, orders []host.Order) *use {
	u := &use{kind: rapid.SampledFrom([]host.Direction{host.ToMemory, host.ToMemory, host.FromMemory, host.AtMemory}).Draw(t, "kind")}
	u.Space, u.Addr, u.Length = space, 1<<16, rapid.SampledFrom([]int{0, 1, 8, 64, 4096, 20000}).Draw(t, "bytes")
	switch rapid.IntRange(0, 3).Draw(t, "where") {
	case 0:
		u.Addr += 1 << rapid.IntRange(0, 15).Draw(t, "further")
	case 1:
		u.Places = strides(rapid.SampledFrom([]int{8, 100, 5000}).Draw(t, "stride"))
	}
	if rapid.IntRange(0, 9).Draw(t, "driver's") == 0 {
		u.Space = nil
	}
	if k := rapid.IntRange(0, len(orders)).Draw(t, "order"); k > 0 {
		u.Order = &orders[k-1]
	}
	u.Begin = u.kind == host.ToMemory && rapid.Bool().Draw(t, "begin")
	if u.kind == host.FromMemory && u.Order != &orders[len(orders)-1] && rapid.Bool().Draw(t, "stream") {
		u.stream = true
		if k := rapid.IntRange(0, len(orders)-1).Draw(t, "among"); k > 0 {
			u.Among = &orders[k-1]
			if u.Order != nil { // as for replies: a line of streams that are Among the same
				u.Order = u.Among
			}
		}
		u.Piece = rapid.SampledFrom([]int{64, 4096}).Draw(t, "piece")
	} else if u.Order == nil && rapid.Bool().Draw(t, "ports") || u.Order != nil && u.Order == &orders[len(orders)-1] {
		u.Ports = 1 // all accesses of the last line, which no stream is in
	}
	return u
}

// For any accesses and any faults and delays of memory: each access ends once,
// accesses of an Order keep it, an atomic happens once, a write that has begun
// ends with OK, and pieces come in order. No access waits forever.
func TestEveryAccessEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"full duplex", "half duplex", "latency", "shared"}
		spec := buses()[rapid.SampledFrom(names).Draw(rt, "bus")]
		spec.WriteWays, spec.ReadWays = rapid.IntRange(0, 2).Draw(rt, "write"), rapid.IntRange(0, 2).Draw(rt, "read")
		chance := rapid.SampledFrom([]float64{0, 0.1, 0.5, 1})
		c := hosttest.Chances{
			Fault: chance.Draw(rt, "fault"), Most: rapid.IntRange(1, 6).Draw(rt, "most"), Late: chance.Draw(rt, "late"),
			Delay: sim.Time(rapid.IntRange(0, 5000).Draw(rt, "ns")) * sim.Nanosecond, Deny: rapid.SampledFrom([]float64{0, 0.05}).Draw(rt, "deny"),
		}
		d := newDevice(spec, func(d *device) host.Translator { return hosttest.NewRandom(d.engine, 0, &d.bus, c) })
		space, orders, now := host.NewAddressSpace(nil), make([]host.Order, 4), sim.Time(0)
		for range rapid.IntRange(1, 40).Draw(rt, "accesses") {
			now += sim.Time(rapid.SampledFrom([]int{0, 0, 1, 100, 1000}).Draw(rt, "pause")) * sim.Nanosecond
			d.later(now, drawUse(rt, space, orders))
		}
		require.NoError(rt, d.engine.Run())
		d.check(rt)
		for i := range orders {
			require.True(rt, orders[i].Empty() && orders[i].Idle())
		}
	})
}

func (d *device) check(t require.TestingT) {
	bytes := int64(0)
	lines := map[*host.Order]*line{}
	for _, u := range d.used {
		want := 1
		if u.stream && u.Length > 0 {
			want = (u.Length + u.Piece - 1) / u.Piece
		}
		if u.dropped {
			require.Less(t, len(u.ended), want)
		} else {
			require.Len(t, u.ended, want, "%+v", u)
		}
		for i, p := range u.pieces {
			require.Equal(t, i, p)
			from, to := 0, u.Length
			if u.stream {
				from, to = u.Span(p)
				if i > 0 {
					require.Less(t, u.ended[i-1], u.ended[i])
				}
			}
			bytes += int64(to - from)
		}
		require.LessOrEqual(t, u.begun, 1)
		require.False(t, u.begun > 0 && u.dropped, "what has begun ends well")
		if u.Begin && !u.dropped {
			require.Equal(t, 1, u.begun)
		}
		if u.kind == host.AtMemory && !u.stream {
			require.Equal(t, len(u.ended), u.reached, "an atomic happens once, or not at all")
		}
		if u.Among != nil {
			lineOf(lines, u.Among).among(t, u)
		}
		if u.Order == nil || u.dropped {
			continue
		}
		l := lineOf(lines, u.Order)
		if u.stream {
			require.Less(t, l.streamed[u.Among != nil], u.ended[0], "streams of a line come one after the other")
			l.streamed[u.Among != nil] = u.ended[len(u.ended)-1]
			continue
		}
		switch u.kind {
		case host.ToMemory:
			require.Less(t, l.landed, u.ended[0], "writes of a line land in order: %+v", u)
			l.landed = u.ended[0]
			l.unchanged(t, u, u.ended[0])
		case host.AtMemory:
			require.Less(t, l.landed, u.at[0], "an atomic takes effect behind the writes before it")
			l.unchanged(t, u, u.at[0])
		case host.FromMemory:
			require.Less(t, l.landed, u.ended[0], "a read ends behind the writes before it")
		}
	}
	require.Equal(t, bytes, d.bus.Bytes(), "what has failed has not crossed")
}

// Two ports carry two reads at once, in their own time, and a third read waits for
// one of them, while the bus carries another and writes go the other way. It
// would catch ports that share a rate, or that are chosen before bytes move.
func TestPortsAreWaysOfTheirOwn(t *testing.T) {
	d := newDevice(buses()["half duplex"], nil)
	const n = 1 // the ports of newDevice
	space := host.NewAddressSpace(nil)
	add := func(kind host.Direction, ports uint8) *use {
		u := &use{kind: kind}
		u.Space, u.Addr, u.Length, u.Ports = space, 1<<16, 1000, ports
		d.later(0, u)
		return u
	}
	a, b, c := add(host.FromMemory, n), add(host.FromMemory, n), add(host.FromMemory, n)
	bus, write := add(host.FromMemory, 0), add(host.ToMemory, n)
	require.NoError(t, d.engine.Run())
	const bytes = 30 * 1000 * sim.Picosecond
	require.Equal(t, []sim.Time{2*latency + bytes}, a.when)
	require.Equal(t, a.when, b.when)
	require.Equal(t, []sim.Time{2*latency + 2*bytes}, c.when)
	require.Equal(t, []sim.Time{2*latency + bytes/2}, bus.when)
	require.Equal(t, []sim.Time{latency + bytes}, write.when)
}

// A write that is answered takes a latency more, and a read that pays only one
// takes one less. Other values change nothing.
func TestWaysOfTheBus(t *testing.T) {
	ended := func(kind host.Direction, write, read int) sim.Time {
		spec := buses()["full duplex"]
		spec.WriteWays, spec.ReadWays = write, read
		d := newDevice(spec, nil)
		u := d.later(0, &use{kind: kind, Access: host.Access{Space: host.NewAddressSpace(nil), Length: 64}})
		require.NoError(t, d.engine.Run())
		return u.when[0]
	}
	write, read := ended(host.ToMemory, 0, 0), ended(host.FromMemory, 0, 0)
	require.Equal(t, write, ended(host.ToMemory, 1, 1))
	require.Equal(t, write+latency, ended(host.ToMemory, 2, 0))
	require.Equal(t, read, ended(host.FromMemory, 2, 2))
	require.Equal(t, read-latency, ended(host.FromMemory, 0, 1))
}

// A translator that admits everything at once adds no time and no event.
func TestPresentMemoryCostsNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for _, spec := range buses() { //lint:maporder each by itself
			all := func(*device) host.Translator {
				return hosttest.Func(func(*host.Access, int, int) host.Status { return host.OK })
			}
			devices := [2]*device{newDevice(spec, nil), newDevice(spec, all)}
			space, now := host.NewAddressSpace(nil), sim.Time(0)
			var orders [2][]host.Order
			orders[0], orders[1] = make([]host.Order, 3), make([]host.Order, 3)
			for range rapid.IntRange(1, 20).Draw(rt, "accesses") {
				now += sim.Time(rapid.IntRange(0, 500).Draw(rt, "pause")) * sim.Nanosecond
				u := drawUse(rt, space, orders[0])
				v := *u
				for i := range orders[0] {
					if u.Order == &orders[0][i] {
						v.Order = &orders[1][i]
					}
					if u.Among == &orders[0][i] {
						v.Among = &orders[1][i]
					}
				}
				devices[0].later(now, u)
				devices[1].later(now, &v)
			}
			require.NoError(rt, devices[0].engine.Run())
			require.NoError(rt, devices[1].engine.Run())
			require.Equal(rt, devices[0].engine.Handled(), devices[1].engine.Handled())
			for i, u := range devices[0].used {
				require.Equal(rt, u.when, devices[1].used[i].when)
				require.Equal(rt, u.ended, devices[1].used[i].ended)
			}
		}
	})
}

// faulting makes every question fail so many times.
func faulting(times int, s host.Status) func(*device) host.Translator {
	return func(*device) host.Translator {
		left := map[int]int{}
		return hosttest.Func(func(a *host.Access, off, _ int) host.Status {
			if left[off] < times {
				left[off]++
				return s
			}
			return host.OK
		})
	}
}

// A fault costs the pause and the round trip until the device has the result.
// For a write the question comes before the crossing: 2L. For a read, an atomic
// or a piece of a stream it comes at memory: the request arrives L later, the
// answer another L later.
func TestAFaultCostsARoundTrip(t *testing.T) {
	const bytes, piece = 20000, 4096
	for name, spec := range buses() { //lint:maporder each by itself
		D := spec.Bandwidth.Time
		took := map[host.Direction]sim.Time{host.ToMemory: latency + D(bytes), host.FromMemory: 2*latency + D(bytes), host.AtMemory: 2*latency + D(bytes)}
		if name == "latency" {
			took[host.ToMemory] = latency
		}
		for faults := range 4 {
			for kind, without := range took { //lint:maporder each by itself
				t.Run(fmt.Sprintf("%s, direction %d, %d faults", name, kind, faults), func(t *testing.T) {
					d := newDevice(spec, faulting(faults, host.Fault))
					u := d.later(0, &use{kind: kind, Access: host.Access{Space: host.NewAddressSpace(nil), Length: bytes, Order: &host.Order{}}})
					require.NoError(t, d.engine.Run())
					require.Equal(t, []sim.Time{without + sim.Time(faults)*(2*latency+pause)}, u.when)
					if faults > 0 {
						require.Equal(t, 2*latency, u.failures[0])
					}
				})
			}
			t.Run(fmt.Sprintf("%s, each piece of a stream, %d faults", name, faults), func(t *testing.T) {
				d := newDevice(spec, faulting(faults, host.Fault))
				u := d.later(0, &use{stream: true, kind: host.FromMemory, Access: host.Access{Space: host.NewAddressSpace(nil), Length: bytes, Piece: piece}})
				require.NoError(t, d.engine.Run())
				var want []sim.Time
				at := latency // at memory
				for from := 0; from < bytes; from += piece {
					at += sim.Time(faults) * (2*latency + pause)
					if name == "latency" {
						want = append(want, at)
						continue
					}
					at += D(int64(min(piece, bytes-from)))
					want = append(want, at+latency)
				}
				require.Equal(t, want, u.when)
			})
		}
	}
}

// A denied access ends at once, and is not retried.
func TestDeniedEndsAtOnce(t *testing.T) {
	for _, kind := range []host.Direction{host.ToMemory, host.FromMemory, host.AtMemory} {
		r := &hosttest.Recorder{}
		d := newDevice(buses()["full duplex"], func(d *device) host.Translator {
			r.Engine, r.Then = d.engine, faulting(100, host.Denied)(d)
			return r
		})
		u := d.later(0, &use{kind: kind, Access: host.Access{Space: host.NewAddressSpace(nil), Length: 64, Order: &host.Order{}}})
		require.NoError(t, d.engine.Run())
		require.True(t, u.dropped)
		require.Equal(t, []sim.Time{2 * latency}, u.failures)
		require.Len(t, r.Questions, 1)
		require.Zero(t, u.reached)
		require.Zero(t, d.bus.Bytes())
	}
}

// A late answer costs its delay, for every kind of access; so does a fault that
// is reported late.
func TestALateAnswerCostsItsTime(t *testing.T) {
	const late = 700 * sim.Nanosecond
	spec := buses()["full duplex"]
	took := spec.Bandwidth.Time(64)
	for kind, trips := range map[host.Direction]sim.Time{host.ToMemory: 1, host.FromMemory: 2, host.AtMemory: 2} { //lint:maporder each by itself
		for _, s := range []host.Status{host.OK, host.Fault} {
			var d *device
			slow := &tardy{status: s, by: late}
			d = newDevice(spec, func(d *device) host.Translator {
				slow.bus, slow.engine = &d.bus, d.engine
				slow.id = d.engine.Add("tardy", slow)
				return slow
			})
			d.tries = 0
			u := d.later(0, &use{kind: kind, Access: host.Access{Space: host.NewAddressSpace(nil), Length: 64}})
			require.NoError(t, d.engine.Run())
			if s == host.OK {
				require.Equal(t, []sim.Time{trips*latency + took + late}, u.when)
			} else {
				require.Equal(t, []sim.Time{2*latency + late}, u.failures)
			}
		}
	}
}

// tardy gives the same answers, but later.
type tardy struct {
	bus    *host.Bus
	engine *sim.Engine
	id     sim.ID
	status host.Status
	by     sim.Time
}

func (s *tardy) Translate(a *host.Access, _, _ int) (host.Status, bool) {
	s.engine.Post(s.engine.Now()+s.by, s.id, s.id, 0, 0, 0, a)
	return host.OK, false
}

func (s *tardy) Done(*host.Access, int, int) {}

func (s *tardy) Handle(e *sim.Event) { s.bus.Translated(e.P.(*host.Access), s.status) }

// The translations of a line are requested at the same time. Accesses that wait
// for a fault already have theirs, and follow at the pace of the bus.
func TestALineFaultsAsOne(t *testing.T) {
	const n, bytes = 5, 4096
	spec := buses()["full duplex"]
	d := newDevice(spec, func(*device) host.Translator {
		asked := map[*host.Access]bool{}
		return hosttest.Func(func(a *host.Access, _, _ int) host.Status {
			if asked[a] {
				return host.OK
			}
			asked[a] = true
			return host.Fault
		})
	})
	order, space := &host.Order{}, host.NewAddressSpace(nil)
	for range n {
		d.later(0, &use{Access: host.Access{Space: space, Length: bytes, Order: order}})
	}
	record := d.later(1, &use{Access: host.Access{Space: nil, Length: 64, Order: order}})
	past := d.later(1, &use{Access: host.Access{Space: nil, Length: 64}})
	require.NoError(t, d.engine.Run())
	for i, u := range d.used[:n] {
		require.Equal(t, []sim.Time{2*latency + pause + sim.Time(i+1)*spec.Bandwidth.Time(bytes) + latency}, u.when)
	}
	require.Equal(t, []sim.Time{d.used[n-1].when[0] + spec.Bandwidth.Time(64)}, record.when, "what needs no translation stays behind the others")
	require.Equal(t, []sim.Time{1 + spec.Bandwidth.Time(64) + latency}, past.when, "and what is in no line goes past")
}

// An access of no bytes reaches no memory, so the translator is not asked.
func TestNoBytesAskNobody(t *testing.T) {
	r := &hosttest.Recorder{Then: faulting(100, host.Denied)(nil)}
	d := newDevice(buses()["full duplex"], func(d *device) host.Translator { r.Engine = d.engine; return r })
	space := host.NewAddressSpace(nil)
	for _, kind := range []host.Direction{host.ToMemory, host.FromMemory, host.AtMemory} {
		d.later(0, &use{kind: kind, Access: host.Access{Space: space, Order: &host.Order{}}})
	}
	d.later(0, &use{stream: true, kind: host.FromMemory, Access: host.Access{Space: space, Piece: 64}})
	require.NoError(t, d.engine.Run())
	for _, u := range d.used {
		require.Len(t, u.ended, 1)
	}
	require.Empty(t, r.Questions)
}

// scattered are ranges one after the other.
type scattered [][2]uint64

func (s scattered) Place(_ *host.Access, off int) (addr uint64, n int) {
	for _, r := range s {
		if uint64(off) < r[1] {
			return r[0] + uint64(off), int(r[1] - uint64(off))
		}
		off -= int(r[1])
	}
	return 0, 0
}

// A translator sees the address of every byte, of contiguous ranges and of
// scattered ones, whose bounds need not match the pieces of a stream.
func TestTheTranslatorSeesEveryPlace(t *testing.T) {
	r := &hosttest.Recorder{}
	d := newDevice(buses()["full duplex"], func(d *device) host.Translator { r.Engine = d.engine; return r })
	space := host.NewAddressSpace(nil)
	d.later(0, &use{Access: host.Access{Space: space, Addr: 0x10000, Length: 100}})
	d.later(10*sim.Microsecond, &use{Access: host.Access{Space: space, Length: 90, Places: scattered{{0x20000, 30}, {0x30000, 1}, {0x40000, 1000}}}})
	d.later(20*sim.Microsecond, &use{stream: true, kind: host.FromMemory, Access: host.Access{
		Space: space, Length: 100, Piece: 64, Places: scattered{{0x50000, 40}, {0x60000, 40}, {0x70000, 20}},
	}})
	require.NoError(t, d.engine.Run())
	var got [][2]uint64
	for _, q := range r.Questions {
		require.Same(t, space, q.Space)
		got = append(got, [2]uint64{q.Addr, uint64(q.Length)})
	}
	require.Equal(t, [][2]uint64{
		{0x10000, 100}, {0x20000, 30}, {0x30000, 1}, {0x40000, 59}, {0x50000, 40}, {0x60000, 24}, {0x60018, 16}, {0x70000, 20},
	}, got)
	for i, q := range r.Passed {
		require.Greater(t, q.At, r.Questions[i].At)
		q.At = r.Questions[i].At
		require.Equal(t, r.Questions[i], q, "it learns of the end of what it has let pass")
	}
	require.Len(t, r.Passed, len(r.Questions))
}

// Events and answers that were not requested panic.
func TestStrayEventsAndAnswersPanic(t *testing.T) {
	d := newDevice(buses()["full duplex"], nil)
	require.PanicsWithValue(t, "host: an event of no bus", func() { d.bus.Handle(&sim.Event{Kind: host.KindBusEnd}) })
	require.PanicsWithValue(t, "host: a translator answers OK for an access that waits for no answer", func() {
		d.bus.Translated(&host.Access{}, host.OK)
	})
	slow := &tardy{}
	d = newDevice(buses()["full duplex"], func(d *device) host.Translator {
		slow.bus, slow.engine = &d.bus, d.engine
		slow.id = d.engine.Add("tardy", slow)
		return slow
	})
	u := d.later(0, &use{Access: host.Access{Space: host.NewAddressSpace(nil), Length: 8}})
	require.NoError(t, d.engine.RunUntil(0))
	require.Panics(t, func() { d.bus.Translated(&u.Access, host.OK) }, "it has answered before")
}

// The hot path of the bus allocates nothing, with and without a translator,
// even if memory faults.
func TestAccessesAllocateNothing(t *testing.T) {
	for _, faults := range []int{-1, 0, 1} {
		var translator func(*device) host.Translator
		if faults >= 0 {
			translator = func(*device) host.Translator {
				asked := 0
				return hosttest.Func(func(*host.Access, int, int) host.Status {
					asked++
					if faults > 0 && asked%2 == 1 {
						return host.Fault
					}
					return host.OK
				})
			}
		}
		d := newDevice(buses()["full duplex"], translator)
		space, order := host.NewAddressSpace(nil), &host.Order{}
		var all []*use
		for _, kind := range []host.Direction{host.ToMemory, host.FromMemory, host.AtMemory, host.FromMemory} {
			u := &use{kind: kind, stream: len(all) == 3, Access: host.Access{Space: space, Length: 200, Order: order}}
			if u.stream {
				u.Piece, u.Order = 64, nil
			}
			u.Client, u.Ref = d, u
			all = append(all, u)
		}
		round := func() {
			for _, u := range all {
				u.pieces, u.ended, u.when, u.failures, u.at = u.pieces[:0], u.ended[:0], u.when[:0], u.failures[:0], u.at[:0]
				d.engine.Post(d.engine.Now(), d.id, d.id, kindMake, 0, 0, u)
			}
			// Run looks for waiting processes, and allocates
			if err := d.engine.RunUntil(d.engine.Now() + sim.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		round()
		require.Zero(t, testing.AllocsPerRun(100, round), "faults: %d", faults)
		require.Len(t, all[3].ended, 4)
	}
}
