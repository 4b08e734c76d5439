package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// stream is two nodes on a crossbar: the first puts messages of many 256-byte
// packets, each of which has a payload handler at the second.
type stream struct {
	c       *runtime.Cluster
	packets int
	handler string // of packets
	rounds  int    // messages to send
	done    int    // messages that have arrived
}

func newStream(tb testing.TB, packets int, overrides ...string) *stream {
	return newStreamOf(tb, "sum", nil, packets, overrides...)
}

// newStreamOf is a stream to the payload handler of a library, or to none, with
// memory that a translator guards.
func newStreamOf(tb testing.TB, library string, translator runtime.MakeTranslator, packets int, overrides ...string) *stream {
	p, err := profile.Load("spin-int", append([]string{"fabric.kind=crossbar", "fabric.radix=0", "fabric.mtu=256", "hpu.cores=32"}, overrides...)...)
	require.NoError(tb, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2, Translator: translator})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	s := &stream{c: c, packets: packets, handler: map[string]string{"bcast": "stream_payload"}[library]}
	var module *handlers.Module
	if library != "" {
		module, err = handlers.Must(library).Load(c)
		require.NoError(tb, err)
	}
	require.NoError(tb, c.Spawn(1, "target", func(p *runtime.Proc) error { return s.target(p, module) }))
	require.NoError(tb, c.Spawn(0, "source", s.source))
	return s
}

// target appends the entry with the handler.
func (s *stream) target(p *runtime.Proc, module *handlers.Module) error {
	if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
		return err
	}
	me := portals.ME{
		Start: p.Alloc(s.packets * 256).Addr(), Length: uint64(s.packets * 256), UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut,
	}
	if module != nil {
		in, err := module.Install(p, handlers.Options{Payload: s.handler})
		if err != nil {
			return err
		}
		in.Attach(&me)
	}
	_, err := p.NI().MEAppend(0, &me, portals.PriorityList, 0)
	return err
}

// source sends as many messages as are wanted, each up to its acknowledgement.
func (s *stream) source(p *runtime.Proc) error {
	ni := p.NI()
	bytes := uint64(s.packets * 256)
	memory := p.Alloc(s.packets * 256)
	for i, data := 0, memory.Raw(); i < len(data); i++ {
		data[i] = byte(i)
	}
	eq, err := ni.Objects().EQAlloc(16)
	if err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: memory.Addr(), Length: bytes, EQ: eq})
	if err != nil {
		return err
	}
	for {
		for s.done == s.rounds {
			p.Sleep(sim.Microsecond)
		}
		if err := ni.Put(portals.Put{MD: md, Length: bytes, Ack: portals.Ack, Target: portals.PhysID(1, 0)}); err != nil {
			return err
		}
		for range 2 { // SEND and ACK
			if _, err := ni.EQWait(eq); err != nil {
				return err
			}
		}
		s.done++
	}
}

// run sends n more messages, up to the acknowledgement of the last.
func (s *stream) run(tb testing.TB, n int) {
	s.rounds += n
	for s.done < s.rounds {
		if err := s.c.RunUntil(s.c.Engine().Now() + sim.Microsecond); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkPacket is a 256-byte packet from the send to the end of its payload
// handler, as part of a message of 1,024.
func BenchmarkPacket(b *testing.B) { benchmarkPacket(b) }

// BenchmarkReliablePacket is the same with a reliable transport: numbers,
// timers, and an acknowledgement for each packet.
func BenchmarkReliablePacket(b *testing.B) { benchmarkPacket(b, "transport.kind=reliable") }

// BenchmarkRepeatedPacket is the same over a network that loses one packet in a
// hundred and doubles another.
func BenchmarkRepeatedPacket(b *testing.B) {
	benchmarkPacket(b, "transport.kind=reliable", "transport.timeout=10us", "fabric.faults={loss: 0.01, duplicate: 0.01, max_delay: 1us}")
}

// BenchmarkPagedPacket is the same where a translator is asked about each of
// the two accesses of a packet, at its source and its target, and answers at
// once, later, or with a fault one time in three; the data is deposited by a
// handler that reads, computes, writes and waits for both (accumulate).
func BenchmarkPagedPacket(b *testing.B) {
	for _, how := range pagings {
		b.Run(how, func(b *testing.B) { benchmarkStream(b, newStreamOf(b, "accumulate", pagedBy(how), 1024)) })
	}
	b.Run("none", func(b *testing.B) { benchmarkStream(b, newStreamOf(b, "accumulate", nil, 1024)) })
}

// pagings are how memory answers.
var pagings = []string{"present", "late", "faults"}

// answering is a translator that allocates nothing.
type answering struct {
	how    string
	bus    *host.Bus
	engine *sim.Engine
	id     sim.ID
	asked  int
}

func pagedBy(how string) runtime.MakeTranslator {
	return func(eng *sim.Engine, _ int, bus *host.Bus) host.Translator {
		t := &answering{how: how, bus: bus, engine: eng}
		t.id = eng.Add("translator", t)
		return t
	}
}

func (t *answering) Translate(a *host.Access, _, _ int) (host.Status, bool) {
	t.asked++
	switch {
	case t.how == "late":
		t.engine.Post(t.engine.Now()+100*sim.Nanosecond, t.id, t.id, 0, 0, 0, a)
		return host.OK, false
	case t.how == "faults" && t.asked%3 == 0:
		return host.Fault, true
	}
	return host.OK, true
}

func (t *answering) Done(*host.Access, int, int) {}

func (t *answering) Handle(e *sim.Event) { t.bus.Translated(e.P.(*host.Access), host.OK) }

func benchmarkPacket(b *testing.B, overrides ...string) {
	benchmarkStream(b, newStream(b, 1024, overrides...))
}

func benchmarkStream(b *testing.B, s *stream) {
	s.rounds = 1 << 30
	step := func(packets int64) {
		for target := s.c.Node(1).Stats().HandlerCalls + packets; s.c.Node(1).Stats().HandlerCalls < target; {
			if err := s.c.RunUntil(s.c.Engine().Now() + sim.Microsecond); err != nil {
				b.Fatal(err)
			}
		}
	}
	step(4096)
	b.ReportAllocs()
	b.ResetTimer()
	step(int64(b.N))
	b.StopTimer()
	events := float64(s.c.Engine().Handled())
	b.ReportMetric(events/float64(s.c.Node(1).Stats().HandlerCalls), "events/packet")
}

// A packet in the middle of a message is six events, whatever the pace of the
// machine: its turn on the bus, its data at the NIC, its head at the switch,
// its end at the other NIC, the end of the look-up in the CAM, the end of its
// handler. The header packet, the record and the acknowledgement share the rest
// among a thousand.
func TestPacketIsSixEvents(t *testing.T) {
	const packets, messages = 1024, 4
	s := newStream(t, packets)
	s.run(t, 1)
	before := s.c.Engine().Handled()
	s.run(t, messages)
	events := float64(s.c.Engine().Handled()-before) / (packets * messages)
	require.InDelta(t, 6, events, 0.05)
	require.Equal(t, int64(packets*(messages+1)), s.c.Node(1).Stats().HandlerCalls)
}

// sprayed is a network that trims, marks and sprays.
var sprayed = []string{
	"fabric.kind=fat-tree", "fabric.radix=4", "transport.kind=reliable", "transport.way=recycle", "transport.paths=64", "fabric.paths=packet", "fabric.header=64", "fabric.queue=16KiB",
	"fabric.answers_first=true", "fabric.trim=either", "fabric.mark_from=4KiB", "fabric.mark_to=12KiB",
}

// A packet costs no allocation once queues and pools have grown: not in the
// NICs, the fabric, the HPUs or the handler; nor does one that is acknowledged,
// lost and sent again, or doubled.
func TestPacketDoesNotAllocate(t *testing.T) {
	for _, overrides := range [][]string{
		nil,
		{"transport.kind=reliable"},
		{"transport.kind=reliable", "transport.timeout=10us", "fabric.faults={duplicate: 0.1, delay: 0.1, loss: 0.02, max_delay: 1us}"},
		// without a header the packets of some messages have no byte
		{"transport.kind=reliable", "transport.law=dctcp", "transport.timeout=10us", "fabric.faults={loss: 0.02}"},
		append([]string{"transport.law=nscc", "transport.window=512"}, sprayed...),
		append([]string{"transport.law=dcqcn", "transport.timeout=10us", "fabric.faults={duplicate: 0.1, delay: 0.1, loss: 0.02, max_delay: 1us}"}, sprayed...),
		{
			"transport.kind=reliable", "transport.law=maxmin", "transport.window=512", "fabric.kind=fat-tree", "fabric.radix=4", "fabric.answers_first=true", "fabric.rates=10us",
			"transport.timeout=10us", "fabric.faults={duplicate: 0.1, delay: 0.1, loss: 0.02, max_delay: 1us}",
		},
		append([]string{"transport.law=rccc", "transport.grant_bytes=8KiB", "transport.grant_share=0.99"}, sprayed...),
	} {
		s := newStream(t, 64, overrides...)
		s.run(t, 600) // losses are remembered up to a number
		const messages = 8
		perMessage := testing.AllocsPerRun(messages, func() { s.run(t, 1) })
		if !poison.On { // then nothing is used again
			require.Zero(t, perMessage)
		}
	}
}

// Nor do an access to memory and a handler that waits for it, whether the
// translation is there at once, late, or a fault that is tried again: at the
// source, in the deposit of messages without handlers, in blocking and other
// operations of handlers.
func TestPagedPacketDoesNotAllocate(t *testing.T) {
	for _, how := range pagings {
		for _, library := range []string{"accumulate", "bcast", ""} {
			for _, transport := range []string{"none", "reliable"} {
				s := newStreamOf(t, library, pagedBy(how), 16, "nic.fault_pause=200ns", "transport.kind="+transport)
				s.run(t, 50)
				const messages = 20
				perMessage := testing.AllocsPerRun(messages, func() { s.run(t, 1) })
				if !poison.On {
					require.Zero(t, perMessage, "%s, %s, %s", how, library, transport)
				}
				_, failures := s.c.Failures()
				require.Zero(t, failures)
			}
		}
	}
}
