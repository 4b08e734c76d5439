package inet_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

// ether is hosts on a simulated network: packets take time on links and in the
// switch, and some are lost, damaged, doubled or late.
type ether struct {
	t     *testing.T
	eng   *sim.Engine
	first sim.ID
	ports []fabric.Port
	hosts []*inet.Host
	due   []sim.Time // when the next event of a host's timers is posted
	fill  func(node int)
}

// kindTimer is the event of a host's deadline.
const kindTimer = sim.Kind(1)

func newEther(t *testing.T, set string, nodes int, faults fabric.FaultSpec) *ether {
	e := &ether{t: t, eng: sim.New(11), due: make([]sim.Time, nodes)}
	f, err := fabric.New(e.eng, fabric.Spec{
		Kind: fabric.Crossbar, Rate: sim.NewRate(800, 1), Wire: 500 * sim.Nanosecond, Switch: sim.Microsecond, StoreAndForward: true, Header: 38, MTU: 1500, Faults: faults,
		InjectBuffer: 1 << 16,
	}, nodes)
	require.NoError(t, err)
	e.first = e.eng.AddGroup(nodes, func(i int) string { return fmt.Sprintf("Host[%d]", i) }, e)
	for i := range nodes {
		c := load(t, set, 0)
		e.hosts = append(e.hosts, inet.NewHost(inet.Addr{10, 0, 0, byte(i)}, inet.HostConfig{Spec: c.Spec, MTU: 1500}))
		e.ports = append(e.ports, f.Attach(i, e.first+sim.ID(i)))
		e.due[i] = inet.Never
	}
	return e
}

// Handle implements sim.Actor.
func (e *ether) Handle(ev *sim.Event) {
	node := int(ev.Dst - e.first)
	switch ev.Kind {
	case fabric.KindArrive, fabric.KindCorrupt:
		p := fabric.Unpack(ev)
		e.ports[node].Release(p)
		b := *p.Ref.(*[]byte)
		if ev.Kind == fabric.KindCorrupt { // checksums detect it
			b = append([]byte(nil), b...)
			b[len(b)/2] ^= 4
		}
		if err := e.hosts[node].Input(ev.Time, b); ev.Kind == fabric.KindArrive {
			require.NoError(e.t, err)
		}
	case kindTimer:
		e.due[node] = inet.Never
		e.hosts[node].Expire(ev.Time)
	}
	e.fill(node)
	e.output(node)
}

// output sends the host's packets while its interface has room, and posts its
// deadline.
func (e *ether) output(node int) {
	h, now := e.hosts[node], e.eng.Now()
	for more := true; more && e.ports[node].Ready(fabric.Requests); {
		more = h.Output(now, 1, func(b []byte) {
			to, is := inet.Destination(b)
			require.True(e.t, is)
			packet := append([]byte(nil), b...)
			e.ports[node].Send(fabric.Packet{Src: int32(node), Dst: int32(to[3]), Bytes: int32(len(b)), Ref: &packet})
		})
	}
	if d := h.Deadline(); d < e.due[node] {
		e.due[node] = d
		e.eng.Post(max(d, now), e.first+sim.ID(node), e.first+sim.ID(node), kindTimer, 0, 0, nil)
	}
}

// server reads streams and checks each byte; clients write them.
type server struct {
	*ether
	listener *inet.Listener
	calls    []*inet.Conn
	written  []int
	read     map[*inet.Conn]int
	bytes    int
	end      sim.Time
}

// client writes as much as there is room for.
func (s *server) client(i int) {
	x, at := s.calls[i], &s.written[i]
	require.NoError(s.t, x.Err())
	for n := 1; *at < s.bytes && n > 0; *at += n {
		n = x.Write(stream(*at, min(3000, s.bytes-*at)))
	}
	if *at == s.bytes {
		x.Close()
	}
}

// serve reads the bytes that have come.
func (s *server) serve() {
	for x := s.listener.Accept(); x != nil; x = s.listener.Accept() {
		s.read[x] = 0
	}
	for x := s.hosts[0].Next(); x != nil; x = s.hosts[0].Next() {
		var b [4000]byte
		for n := x.Read(b[:]); n > 0; n = x.Read(b[:]) {
			require.Equal(s.t, stream(s.read[x], n), b[:n])
			s.read[x] += n
		}
		if _, ended := x.Readable(); ended && s.read[x] == s.bytes {
			x.Close()
			s.end = max(s.end, s.eng.Now())
		}
	}
}

// transfer runs clients that send streams to a server. It returns when the last
// byte was read, and the totals of the first client.
func transfer(t *testing.T, set string, clients, bytes int, faults fabric.FaultSpec) (sim.Time, inet.Stats) {
	s := &server{ether: newEther(t, set, 1+clients, faults), calls: make([]*inet.Conn, clients), written: make([]int, clients), read: map[*inet.Conn]int{}, bytes: bytes}
	defer s.eng.Close()
	var err error
	s.listener, err = s.hosts[0].Listen(80, clients)
	require.NoError(t, err)
	s.fill = func(node int) {
		if node == 0 {
			s.serve()
		} else {
			s.client(node - 1)
		}
	}
	for i := range s.calls {
		s.calls[i], err = s.hosts[1+i].Dial(0, s.hosts[0].Addr, 80)
		require.NoError(t, err)
		s.output(1 + i)
	}
	require.NoError(t, s.eng.Run())
	require.Len(t, s.read, clients)
	for x, n := range s.read {
		require.Equal(t, bytes, n)
		require.NoError(t, x.Err())
	}
	for i, h := range s.hosts {
		require.Zero(t, h.Conns(), i)
	}
	require.Positive(t, s.hosts[0].Stats.Malformed, "damaged packets")
	return s.end, s.calls[0].Stats
}

// TCP over a lossy fabric: three clients send a stream each to a server, on a
// network of the simulator that loses 5% of the packets, damages 1%, doubles 1%
// and delays 2%. Every byte comes, in order; no connection fails; and no host
// has a connection at the end. The same seed gives the same times.
func TestOverLossyFabric(t *testing.T) {
	faults := fabric.FaultSpec{Loss: 0.05, Corrupt: 0.01, Duplicate: 0.01, Delay: 0.02, MaxDelay: 300 * sim.Microsecond}
	for _, set := range inet.Sets() {
		t.Run(set, func(t *testing.T) {
			end, stats := transfer(t, set, 3, *streamBytes, faults)
			require.Positive(t, stats.Retransmitted)
			t.Logf("%v: %+v", end, stats)
			again, same := transfer(t, set, 3, *streamBytes, faults)
			require.Equal(t, end, again)
			require.Equal(t, stats, same)
		})
	}
}

// stream returns n bytes of a stream from its byte at on.
func stream(at, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((at + i) * 7 >> 3)
	}
	return b
}
