package inet_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/inet"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/sim"
)

var (
	streamBytes = flag.Int("inet.bytes", 60_000, "bytes of each stream over a lossy fabric")
	hostileRuns = flag.Int("inet.hostile", 2_000, "connections with hostile segments")
)

// load returns a known set of parameters.
func load(t require.TestingT, name string, mss int, overrides ...string) inet.Config {
	s, err := inet.Load(name, overrides...)
	require.NoError(t, err)
	return inet.Config{Spec: *s, MSS: mss}
}

// streams sends bytes in both directions until both ends have read all and
// there are no more events. Both ends are then closed, without a failure. (The
// acknowledgement of a FIN may be lost until the peer's TIME-WAIT is over; the
// peer then resets.) Programs read and write pieces of different lengths, and
// close in any order.
func (w *wire) streams(bytes [2]int, lazy int) {
	var written, read [2]int
	w.output(0)
	for i := 0; ; i++ {
		require.Less(w.t, i, 20_000_000)
		for side, x := range w.ends {
			if x != nil && (i%lazy == 0 || len(w.way) == 0) {
				w.program(side, x, bytes, &written, &read)
			}
		}
		if !w.step() && read == [2]int{bytes[1], bytes[0]} {
			break
		}
		for _, x := range w.ends {
			if x != nil {
				require.NoError(w.t, x.Err())
			}
		}
	}
	for side, x := range w.ends {
		require.Equal(w.t, inet.Closed, x.State())
		require.NoError(w.t, x.Err())
		require.EqualValues(w.t, bytes[1-side], x.Stats.Received)
	}
}

// program writes as much as there is room for, and reads all that has come:
// byte k of a stream is a function of k.
func (w *wire) program(side int, x *inet.Conn, bytes [2]int, written, read *[2]int) {
	var b [5000]byte
	for written[side] < bytes[side] {
		n := min(1+w.rng.IntN(len(b)), bytes[side]-written[side])
		for k := range n {
			b[k] = byte((written[side] + k) * (side + 3) >> 3)
		}
		n = x.Write(b[:n])
		if written[side] += n; n == 0 {
			break
		}
	}
	if written[side] == bytes[side] {
		x.Close()
	}
	n := x.Read(b[:1+w.rng.IntN(len(b))])
	for k := range n {
		if want := byte((read[side] + k) * (1 - side + 3) >> 3); b[k] != want {
			require.Equal(w.t, want, b[k], "byte %d", read[side]+k)
		}
	}
	read[side] += n
	w.output(side)
}

// TCP over a lossy fabric: every byte in order, in both directions, and both
// ends closed, under 5% loss, 5% duplicates and reordering; each set of
// parameters, with its limits, against each.
func TestLossyFabric(t *testing.T) {
	for _, a := range inet.Sets() {
		for _, b := range inet.Sets() {
			t.Run(a+"-"+b, func(t *testing.T) {
				w := newWire(t, 5, load(t, a, 1460), load(t, b, 1460))
				w.lossy, w.late = 0.05, 200*sim.Microsecond
				w.streams([2]int{*streamBytes, *streamBytes / 2}, 1)
				n := w.ends[0].Stats
				require.Positive(t, n.Retransmitted)
				t.Logf("%v: %+v", w.now, n)
			})
		}
	}
}

// Streams arrive for any parameters, network and programs. Limits are off: with
// losses of 30% some connection would reach them.
func TestAnyStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		end := func(name string) inet.Config {
			set := rapid.SampledFrom(append(inet.Sets(), "fast")).Draw(t, name)
			if set == "fast" { // time-outs of milliseconds, no options
				c := config(rapid.IntRange(100, 9000).Draw(t, name+" mss"))
				c.TimeWait = sim.Second
				return c
			}
			c := load(t, set, rapid.IntRange(100, 9000).Draw(t, name+" mss"), "retries=0", "syn_retries=0", "syn_ack_retries=0", "persist_retries=0", "syn_received_most=0s", "last_wait=0s",
				fmt.Sprintf("sack=%v", rapid.Bool().Draw(t, name+" sack")), fmt.Sprintf("nagle=%v", rapid.Bool().Draw(t, name+" nagle")),
				fmt.Sprintf("send_buffer=%dB", rapid.IntRange(1, 1<<17).Draw(t, name+" send")), fmt.Sprintf("receive_buffer=%dB", rapid.IntRange(600, 1<<18).Draw(t, name+" receive")))
			return c
		}
		w := newWire(t, rapid.Uint64().Draw(t, "seed"), end("a"), end("b"))
		w.lossy = rapid.SampledFrom([]float64{0, 0, 0.01, 0.1, 0.3}).Draw(t, "loss")
		w.late = sim.Time(rapid.SampledFrom([]int64{0, 0, 10, 200, 20_000}).Draw(t, "late")) * sim.Microsecond
		w.streams([2]int{rapid.IntRange(0, 50_000).Draw(t, "there"), rapid.IntRange(0, 8_000).Draw(t, "back")}, rapid.IntRange(1, 5).Draw(t, "lazy"))
	})
}

// Both ends open at once, and lose segments: there is one connection (RFC 9293
// §3.5), and its streams arrive.
func TestSimultaneousOpen(t *testing.T) {
	for seed := range uint64(20) {
		c := load(t, "rfc", 1460)
		w := newWire(t, seed, c, c)
		w.ends[1] = inet.Dial(c, 80, here, 1000, w.rng.Uint32())
		w.lossy = 0.1
		w.output(1)
		w.streams([2]int{5000, 5000}, 1)
	}
}

// Connections and hosts keep their invariants for any input: like FuzzConn and
// FuzzHost, with a fixed seed.
func TestHostile(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for range *hostileRuns {
		b := make([]byte, 2+12*rng.IntN(60))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		for i := 3; i+8 < len(b); i += 12 { // mostly plausible segments
			if b[i] = []byte{inet.ACK, inet.ACK, inet.ACK | inet.PSH, inet.SYN | inet.ACK, inet.ACK | inet.FIN, b[i]}[rng.IntN(6)]; rng.IntN(2) == 0 {
				binary := rng.Uint64N(600)
				b[i+3], b[i+4], b[i+5], b[i+6] = 0, 0, byte(binary), byte(binary>>8)
			}
		}
		hostile(t, b)
		hostilePackets(t, b)
	}
}

// Sets are complete and valid, and an error names a wrong set or override.
func TestSets(t *testing.T) {
	require.Subset(t, inet.Sets(), []string{"linux", "lwip", "rfc"})
	for _, name := range inet.Sets() {
		s, err := inet.Load(name, "retries=3", "rto_least=1ms")
		require.NoError(t, err)
		require.Equal(t, 3, s.Retries)
		require.Equal(t, sim.Millisecond, s.RTOLeast)
	}
	_, err := inet.Load("bsd")
	require.EqualError(t, err, `inet: set of parameters "bsd", expected one of `+strings.Join(inet.Sets(), ", "))
	_, err = inet.Load("rfc", "retries=101", "delayed_ack=0s")
	require.EqualError(t, err, "inet: rfc: delayed_ack: 0 s, expected 1 ps to 100 s\nretries: 101, expected 0 to 100")
	_, err = inet.Load("rfc", "rto=1s")
	require.ErrorContains(t, err, "rto")
}

// BenchmarkConn measures a segment of a stream, from the write to the read,
// with its acknowledgement.
func BenchmarkConn(b *testing.B) {
	for _, name := range inet.Sets() {
		b.Run(name, func(b *testing.B) {
			p := newPair(b, name)
			b.ReportAllocs()
			b.SetBytes(1460)
			for b.Loop() {
				p.segment()
			}
		})
	}
}

// A segment of a stream allocates nothing.
func TestNoAllocations(t *testing.T) {
	for _, name := range inet.Sets() {
		p := newPair(t, name)
		for range 1000 {
			p.segment()
		}
		require.Zero(t, testing.AllocsPerRun(1000, p.segment), name)
	}
}

// pair is two ends without a network between them.
type pair struct {
	ends     [2]*inet.Conn
	now      sim.Time
	b, read  [1460]byte
	received int
	emit     [2]func(*inet.Segment)
}

func newPair(t require.TestingT, name string) *pair {
	c := load(t, name, 1460)
	p := &pair{}
	p.ends[0] = inet.Dial(c, 1, there, 2, 77)
	p.ends[0].Output(0, math.MaxInt, func(s *inet.Segment) { p.ends[1] = inet.Accept(c, 0, here, s, 99) })
	for side := range p.ends {
		p.emit[side] = func(s *inet.Segment) { p.ends[1-side].Input(p.now, s) }
	}
	for range 3 {
		p.exchange()
	}
	require.True(t, p.ends[0].Established() && p.ends[1].Established())
	return p
}

func (p *pair) exchange() {
	p.ends[0].Output(p.now, math.MaxInt, p.emit[0])
	p.ends[1].Output(p.now, math.MaxInt, p.emit[1])
}

func (p *pair) segment() {
	p.now += sim.Microsecond
	p.ends[0].Write(p.b[:])
	p.exchange()
	for side := range p.ends {
		if p.ends[side].Deadline() <= p.now {
			p.ends[side].Expire(p.now)
		}
	}
	p.received += p.ends[1].Read(p.read[:])
}
