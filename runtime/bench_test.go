package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// stream is two nodes on a crossbar: the first puts messages of many 256-byte packets, whose payload handlers at the second sum them up.
type stream struct {
	c       *runtime.Cluster
	packets int
	memory  *nic.Memory
	rounds  int // messages to send
	done    int // messages that have arrived
}

func newStream(tb testing.TB, packets int, overrides ...string) *stream {
	p, err := profile.Load("spin-int", append([]string{"fabric.kind=crossbar", "fabric.radix=0", "fabric.mtu=256", "hpu.cores=32"}, overrides...)...)
	require.NoError(tb, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	module, err := c.LoadModule("sum", sum.Module)
	require.NoError(tb, err)
	s := &stream{c: c, packets: packets}
	require.NoError(tb, c.Spawn(1, "target", func(p *runtime.Proc) error { return s.target(p, module) }))
	require.NoError(tb, c.Spawn(0, "source", s.source))
	return s
}

// target appends the entry whose handlers sum the packets up.
func (s *stream) target(p *runtime.Proc, module *hpu.Module) (err error) {
	ni := p.NI()
	if s.memory, err = p.HPUAllocMem(module, len(spin.EncodeState(new(sum.State)))); err != nil {
		return err
	}
	handlers, err := s.memory.Spin("", sum.Payload, "")
	if err != nil {
		return err
	}
	if _, err := ni.PTAlloc(0, portals.EQNone, 0); err != nil {
		return err
	}
	addr := p.Alloc(s.packets * 256).Addr()
	_, err = ni.MEAppend(0, &portals.ME{
		Start: addr, Length: uint64(s.packets * 256), UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut, Spin: handlers,
	}, portals.PriorityList, 0)
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
	eq, err := ni.EQAlloc(16)
	if err != nil {
		return err
	}
	md, err := ni.MDBind(&portals.MD{Start: memory.Addr(), Length: bytes, EQ: eq})
	if err != nil {
		return err
	}
	for {
		for s.done == s.rounds {
			p.Sleep(sim.Microsecond)
		}
		if err := ni.Put(md, 0, bytes, portals.Ack, portals.PhysID(1, 0), 0, 0, 0, 0, 0); err != nil {
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

// BenchmarkPacket is a 256-byte packet from the send to the end of its payload handler, as part of a message of 1,024.
func BenchmarkPacket(b *testing.B) { benchmarkPacket(b) }

// BenchmarkReliablePacket is the same with a reliable transport: numbers, timers, and an acknowledgement for each packet.
func BenchmarkReliablePacket(b *testing.B) { benchmarkPacket(b, "transport.kind=reliable") }

// BenchmarkRepeatedPacket is the same over a network that loses one packet in a hundred and doubles another.
func BenchmarkRepeatedPacket(b *testing.B) {
	benchmarkPacket(b, "transport.kind=reliable", "transport.timeout=10us", "fabric.faults={loss: 0.01, duplicate: 0.01, max_delay: 1us}")
}

func benchmarkPacket(b *testing.B, overrides ...string) {
	s := newStream(b, 1024, overrides...)
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

// A packet costs no allocation once queues and pools have grown: not in the NICs, the fabric, the HPUs or the handler; nor does one that is
// acknowledged, lost and sent again, or doubled.
func TestPacketDoesNotAllocate(t *testing.T) {
	for _, overrides := range [][]string{
		nil,
		{"transport.kind=reliable"},
		{"transport.kind=reliable", "transport.timeout=10us", "fabric.faults={duplicate: 0.1, delay: 0.1, loss: 0.02, max_delay: 1us}"},
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
