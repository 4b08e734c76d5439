package inet_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

// lan carries packets between hosts, each after a fixed time, and loses some.
type lan struct {
	t     require.TestingT
	now   sim.Time
	hosts map[inet.Addr]*inet.Host
	order []*inet.Host
	way   []sentPacket
	rng   *rand.Rand
	loss  float64
}

type sentPacket struct {
	at sim.Time
	b  []byte
}

func newLAN(t require.TestingT, set string, hosts int, overrides ...string) *lan {
	l := &lan{t: t, hosts: map[inet.Addr]*inet.Host{}, rng: rand.New(rand.NewPCG(1, 2))}
	for i := range hosts {
		c := load(t, set, 0, overrides...)
		h := inet.NewHost(inet.Addr{10, 0, 0, byte(i + 1)}, inet.HostConfig{Spec: c.Spec, MTU: 1500, Secret: uint64(i)})
		l.hosts[h.Addr] = h
		l.order = append(l.order, h)
	}
	return l
}

func (l *lan) output() {
	for _, h := range l.order {
		for more := true; more; {
			more = h.Output(l.now, 3, func(b []byte) {
				if l.rng.Float64() >= l.loss {
					l.way = append(l.way, sentPacket{l.now + trip, append([]byte(nil), b...)})
				}
			})
		}
	}
}

// step goes on to the next event until a time. False: there is none.
func (l *lan) step(until sim.Time) bool {
	l.output()
	at := inet.Never
	if len(l.way) > 0 {
		at = l.way[0].at
	}
	for _, h := range l.order {
		at = min(at, h.Deadline())
	}
	if at > until {
		return false
	}
	l.now = max(l.now, at)
	if len(l.way) > 0 && l.way[0].at <= l.now {
		p := l.way[0]
		l.way = l.way[1:]
		to, is := inet.Destination(p.b)
		require.True(l.t, is)
		if h := l.hosts[to]; h != nil {
			require.NoError(l.t, h.Input(l.now, p.b))
		}
		return true
	}
	for _, h := range l.order {
		h.Expire(l.now)
	}
	return true
}

func (l *lan) run(until sim.Time) {
	for l.step(until) {
	}
	l.now = max(l.now, until)
}

// A server takes connections of several hosts at once and sends back the bytes
// that it reads, on a network that loses packets. Every byte comes back, and at
// the end no host has a connection left.
func TestHostsServe(t *testing.T) {
	for _, set := range inet.Sets() {
		t.Run(set, func(t *testing.T) {
			const bytes, clients = 4000, 5
			l := newLAN(t, set, 1+clients)
			l.loss = 0.05
			listener, err := l.order[0].Listen(11211, 2*clients)
			require.NoError(t, err)
			var echoed [2 * clients]int
			var calls [2 * clients]*inet.Conn
			for i := range calls {
				calls[i], err = l.order[1+i%clients].Dial(0, l.order[0].Addr, 11211)
				require.NoError(t, err)
				require.Equal(t, bytes, calls[i].Write(pattern(i, bytes)))
				calls[i].Close()
			}
			accepted := 0
			for i := 0; l.step(inet.Never - 1); i++ {
				require.Less(t, i, 1_000_000)
				for listener.Accept() != nil {
					accepted++
				}
				serve(t, l.order[0])
				for i, x := range calls {
					require.NoError(t, x.Err())
					var b [bytes]byte
					n := x.Read(b[:])
					require.Equal(t, pattern(i, bytes)[echoed[i]:echoed[i]+n], b[:n])
					echoed[i] += n
				}
			}
			require.Equal(t, 2*clients, accepted)
			for i := range calls {
				require.Equal(t, bytes, echoed[i])
			}
			for _, h := range l.order {
				require.Zero(t, h.Conns())
				require.Zero(t, h.Stats.Malformed)
			}
		})
	}
}

func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * (2*seed + 3) >> 2)
	}
	return b
}

// serve is a program that sends back received bytes, and closes after the
// peer's end.
func serve(t *testing.T, h *inet.Host) {
	for x := h.Next(); x != nil; x = h.Next() {
		var b [700]byte
		for n := min(len(b), x.Room()); n > 0; n = min(len(b), x.Room()) {
			if n = x.Read(b[:n]); n == 0 {
				break
			}
			require.Equal(t, n, x.Write(b[:n]))
		}
		if n, ended := x.Readable(); ended && n == 0 {
			x.Close()
		}
	}
}

// A port without a listener refuses. A listener with a full backlog drops the
// SYN, and takes it when it comes again. A port can have one listener.
func TestListen(t *testing.T) {
	l := newLAN(t, "linux", 2)
	a, b := l.order[0], l.order[1]
	x, err := a.Dial(0, b.Addr, 80)
	require.NoError(t, err)
	l.run(sim.Millisecond)
	require.ErrorIs(t, x.Err(), inet.ErrRefused)
	require.EqualValues(t, 1, b.Stats.Refused)
	require.Zero(t, a.Conns())

	listener, err := b.Listen(80, 2)
	require.NoError(t, err)
	_, err = b.Listen(80, 2)
	require.ErrorIs(t, err, inet.ErrInUse)
	var calls [3]*inet.Conn
	for i := range calls {
		calls[i], err = a.Dial(l.now, b.Addr, 80)
		require.NoError(t, err)
	}
	l.run(10 * sim.Millisecond)
	require.EqualValues(t, 1, b.Stats.Overflow)
	require.True(t, calls[0].Established() && calls[1].Established() && !calls[2].Established())
	require.NotNil(t, listener.Accept())
	l.run(2 * sim.Second)
	require.True(t, calls[2].Established(), "the SYN came again after a second")
	listener.Close(l.now)
	l.run(3 * sim.Second)
	require.NoError(t, calls[0].Err())
	require.ErrorIs(t, calls[1].Err(), inet.ErrReset, "nobody had accepted it")
	require.ErrorIs(t, calls[2].Err(), inet.ErrReset)
}

// A host does not answer: the connection fails after the time of the set, and
// the error names the missing answer. Nothing is left.
func TestNobodyAnswers(t *testing.T) {
	for set, after := range map[string]sim.Time{"linux": 127 * sim.Second, "lwip": 18500 * sim.Millisecond, "rfc": 183 * sim.Second} {
		l := newLAN(t, set, 1)
		x, err := l.order[0].Dial(0, inet.Addr{10, 0, 0, 99}, 80)
		require.NoError(t, err)
		l.run(after - 1)
		require.NoError(t, x.Err())
		l.run(after)
		var f *inet.Failure
		require.ErrorAs(t, x.Err(), &f)
		require.ErrorIs(t, f, inet.ErrTimeout)
		require.Equal(t, inet.SynSent, f.State)
		require.Equal(t, after, f.At)
		require.Equal(t, "answer to the SYN", f.Waited)
		require.Zero(t, l.order[0].Conns())
	}
}

// RFC 9293 §3.6.1: a SYN beyond the numbers of the last connection of these
// ports begins a new one, although the last is in TIME-WAIT.
func TestTimeWaitFollowed(t *testing.T) {
	l := newLAN(t, "linux", 2)
	server := l.order[1]
	listener, err := server.Listen(80, 5)
	require.NoError(t, err)
	now := sim.Time(0)
	client := func(s inet.Segment) *inet.Segment { // the test is its peer
		s.SrcPort, s.DstPort, s.Window = 5000, 80, 1000
		p := inet.Packet{Src: inet.Addr{10, 0, 0, 9}, Dst: server.Addr, Protocol: inet.ProtocolTCP, Payload: s.Append(nil, inet.Addr{10, 0, 0, 9}, server.Addr)}
		require.NoError(t, server.Input(now, p.Append(nil)))
		var got *inet.Segment
		server.Output(now, math.MaxInt, func(b []byte) {
			p, err := inet.Parse(b)
			require.NoError(t, err)
			g, err := inet.ParseTCP(&p)
			require.NoError(t, err)
			got = &g
		})
		return got
	}
	open := func(seq uint32) (*inet.Conn, uint32) {
		answer := client(inet.Segment{Seq: seq, Flags: inet.SYN})
		require.EqualValues(t, inet.SYN|inet.ACK, answer.Flags)
		require.Equal(t, seq+1, answer.Ack)
		client(inet.Segment{Seq: seq + 1, Ack: answer.Seq + 1, Flags: inet.ACK})
		x := listener.Accept()
		require.NotNil(t, x)
		return x, answer.Seq
	}
	x, first := open(100)
	x.Close()
	client(inet.Segment{Seq: 101, Ack: first + 1, Flags: inet.ACK})
	client(inet.Segment{Seq: 101, Ack: first + 2, Flags: inet.ACK | inet.FIN})
	require.Equal(t, inet.TimeWait, x.State())
	old := client(inet.Segment{Seq: 100, Flags: inet.SYN})
	require.EqualValues(t, inet.ACK, old.Flags, "an old SYN is not followed")
	y, second := open(5000)
	require.Equal(t, inet.Closed, x.State())
	require.Equal(t, inet.Established, y.State())
	require.Positive(t, int32(second-(first+2)), "beyond what was used")
	require.Equal(t, 1, server.Conns())
}

// Datagrams come to the socket of the port while there is room; others are
// counted.
func TestDatagrams(t *testing.T) {
	l := newLAN(t, "linux", 2, "receive_buffer=1000B")
	a, b := l.order[0], l.order[1]
	from, err := a.UDP(7)
	require.NoError(t, err)
	to, err := b.UDP(9)
	require.NoError(t, err)
	_, err = b.UDP(9)
	require.ErrorIs(t, err, inet.ErrInUse)
	require.ErrorIs(t, from.Send(b.Addr, 9, make([]byte, 1473)), inet.ErrTooLong)
	for i := range 3 {
		require.NoError(t, from.Send(b.Addr, 9, pattern(i, 400)))
	}
	require.NoError(t, from.Send(b.Addr, 10, nil))
	l.run(sim.Millisecond)
	for i := range 2 {
		r, is := to.Receive()
		require.True(t, is)
		require.Equal(t, inet.Received{From: a.Addr, Port: 7, Data: pattern(i, 400)}, r)
	}
	_, is := to.Receive()
	require.False(t, is)
	require.EqualValues(t, 1, to.Dropped)
	require.EqualValues(t, 1, b.Stats.Unreachable)
	to.Close()
	require.NoError(t, from.Send(b.Addr, 9, nil))
	l.run(2 * sim.Millisecond)
	require.EqualValues(t, 2, b.Stats.Unreachable)
	require.ErrorIs(t, b.Input(0, []byte{1}), inet.ErrMalformed)
	require.EqualValues(t, 1, b.Stats.Malformed)
}

// Each dial has another port, and a dial fails when all are taken. First
// numbers differ by connection and by time, and are the same in each run.
func TestPorts(t *testing.T) {
	h := newLAN(t, "linux", 1).order[0]
	to := inet.Addr{10, 0, 0, 2}
	used := map[uint16]bool{}
	for range 1 << 14 {
		x, err := h.Dial(0, to, 80)
		require.NoError(t, err)
		require.False(t, used[x.Local])
		used[x.Local] = true
	}
	_, err := h.Dial(0, to, 80)
	require.ErrorIs(t, err, inet.ErrInUse)
	_, err = h.Dial(0, to, 81)
	require.NoError(t, err)
}

// A packet of a stream between hosts, with its acknowledgement, allocates
// nothing.
func TestHostAllocations(t *testing.T) {
	p := newHosts(t)
	for range 1000 {
		p.packet()
	}
	require.Zero(t, testing.AllocsPerRun(1000, p.packet))
}

// BenchmarkHost measures a packet of a stream between hosts, from the write to
// the read, with its acknowledgement and all checksums.
func BenchmarkHost(b *testing.B) {
	p := newHosts(b)
	b.ReportAllocs()
	b.SetBytes(1460)
	for b.Loop() {
		p.packet()
	}
}

type hosts struct {
	ends    [2]*inet.Host
	x, y    *inet.Conn
	now     sim.Time
	b, read [1460]byte
	emit    [2]func([]byte)
	failed  error
}

func newHosts(t require.TestingT) *hosts {
	c := load(t, "linux", 0)
	p := &hosts{}
	for i := range p.ends {
		p.ends[i] = inet.NewHost(inet.Addr{10, 0, 0, byte(i)}, inet.HostConfig{Spec: c.Spec, MTU: 1500})
		p.emit[i] = func(b []byte) {
			if err := p.ends[1-i].Input(p.now, b); err != nil {
				p.failed = err
			}
		}
	}
	l, err := p.ends[1].Listen(80, 1)
	require.NoError(t, err)
	p.x, err = p.ends[0].Dial(0, p.ends[1].Addr, 80)
	require.NoError(t, err)
	for range 3 {
		p.exchange()
	}
	p.y = l.Accept()
	require.NotNil(t, p.y, fmt.Sprint(p.failed))
	return p
}

func (p *hosts) exchange() {
	for i, h := range p.ends {
		h.Output(p.now, math.MaxInt, p.emit[i])
	}
}

func (p *hosts) packet() {
	p.now += sim.Microsecond
	p.x.Write(p.b[:])
	p.exchange()
	for _, h := range p.ends {
		h.Expire(p.now)
		for h.Next() != nil {
		}
	}
	p.y.Read(p.read[:])
}
