package inet

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// Errors of a Host's calls.
var (
	// ErrInUse: the port, or every port for connections to that peer's port, is
	// taken.
	ErrInUse = errors.New("inet: the port is in use")
	// ErrTooLong: the datagram does not fit a packet. There is no fragmentation.
	ErrTooLong = errors.New("inet: the datagram is too long")
)

// Ports that a Dial may use (RFC 6335 §6).
const (
	firstPort = 49152
	ports     = 1<<16 - firstPort
)

// HostConfig is the parameters of a Host.
type HostConfig struct {
	Spec
	MTU int // most bytes of a packet, 576 to MaxPacket
	// seed of the first sequence numbers (RFC 9293 §3.4.1): equal secrets give
	// equal numbers
	Secret uint64
}

// HostStats is the totals of a host outside its connections.
type HostStats struct {
	Malformed   int64 // packets that were malformed, or not for this address
	Refused     int64 // segments without a connection, answered with a reset
	Overflow    int64 // SYNs dropped because a listener had no place for them
	Unreachable int64 // datagrams to ports without a socket
}

// Host is an address with its connections, listeners and sockets. Like a Conn
// it is a state machine. It sends IPv4 packets. Call Output after each call of
// the host or of one of its connections; Deadline is valid after Output.
type Host struct {
	Addr  Addr
	Stats HostStats

	c         HostConfig
	conns     map[connID]*Conn
	listeners map[uint16]*Listener
	sockets   map[uint16]*Socket
	port      uint16 // given to a connection last
	id        uint16 // of packets
	made      uint64 // connections

	touched  []*Conn // they may have something to send
	news     []*Conn // something has happened on them
	timers   deadlines
	answers  []answer // to segments without a connection
	outgoing []outgoing
	waiting  int // bytes of outgoing, with headers
	segment  []byte
	packet   []byte
	current  *Conn          // the connection that sends
	emit     func([]byte)   // takes its packets
	forward  func(*Segment) // from current to emit
}

// mostAnswers bounds the answers to segments without a connection that wait for
// Output. Further segments get no answer.
const mostAnswers = 1000

// connID is the peer's address and both ports.
type connID struct {
	peer          Addr
	local, remote uint16
}

// hosted is the host's state of a connection.
type hosted struct {
	host     *Host
	listener *Listener // until the connection is accepted, or has failed before
	ready    bool      // it is established and waits to be accepted
	touched  bool
	news     bool
	number   uint64 // connections made until then
	at       int    // place in the heap of deadlines
	deadline sim.Time
}

type answer struct {
	to Addr
	s  Segment
}

type outgoing struct {
	to Addr
	d  Datagram
}

// NewHost returns a host at an address.
func NewHost(addr Addr, c HostConfig) *Host {
	h := &Host{Addr: addr, c: c, conns: map[connID]*Conn{}, listeners: map[uint16]*Listener{}, sockets: map[uint16]*Socket{}, port: 1<<16 - 1}
	h.forward = func(s *Segment) { h.send(h.current.Peer, s, h.emit) }
	return h
}

// Conns returns the number of connections, including those in TIME-WAIT.
func (h *Host) Conns() int { return len(h.conns) }

// first returns a first sequence number (RFC 9293 §3.4.1): a clock with a step
// of 4 µs, and a function of the connection and the secret.
func (h *Host) first(now sim.Time, id connID) uint32 {
	const step = 4_000_000 // ps
	x := h.c.Secret
	for _, v := range [...]uint64{uint64(id.peer[0])<<24 | uint64(id.peer[1])<<16 | uint64(id.peer[2])<<8 | uint64(id.peer[3]), uint64(id.local)<<16 | uint64(id.remote)} {
		x = (x ^ v) * 0x9e3779b97f4a7c15 // splitmix64
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x ^= x >> 27
	}
	return uint32(x) + uint32(now/step)
}

func (h *Host) config() Config {
	return Config{Spec: h.c.Spec, MSS: h.c.MTU - HeaderBytes - TCPHeaderBytes}
}

// add adds a connection to the host.
func (h *Host) add(x *Conn, id connID) {
	h.made++
	x.hosted = hosted{host: h, number: h.made, at: -1, deadline: Never}
	h.conns[id] = x
	x.touch()
}

// Dial begins a connection to a port of another host.
func (h *Host) Dial(now sim.Time, to Addr, port uint16) (*Conn, error) {
	for range ports {
		if h.port++; h.port < firstPort {
			h.port = firstPort
		}
		id := connID{to, h.port, port}
		if h.conns[id] == nil {
			x := Dial(h.config(), h.port, to, port, h.first(now, id))
			h.add(x, id)
			return x, nil
		}
	}
	return nil, fmt.Errorf("%w: all of %d to port %d of %v", ErrInUse, ports, port, to)
}

// Close closes everything. It frees all ports and resets the connections, in
// the order in which they were made. Output then sends the resets and the
// remaining datagrams.
func (h *Host) Close(now sim.Time) {
	for _, port := range slices.Sorted(maps.Keys(h.listeners)) {
		h.listeners[port].Close(now)
	}
	for _, x := range slices.SortedFunc(maps.Values(h.conns), func(x, y *Conn) int { return cmp.Compare(x.hosted.number, y.hosted.number) }) {
		x.Abort(now)
	}
	clear(h.sockets)
}

// Listener is a port in state LISTEN.
type Listener struct {
	Port    uint16
	h       *Host
	backlog int
	begun   int // connections whose handshake is under way
	ready   []*Conn
}

// Listen accepts connections to a port. At most backlog connections may be
// begun and not yet accepted.
func (h *Host) Listen(port uint16, backlog int) (*Listener, error) {
	if h.listeners[port] != nil {
		return nil, fmt.Errorf("%w: %d", ErrInUse, port)
	}
	l := &Listener{Port: port, h: h, backlog: backlog}
	h.listeners[port] = l
	return l, nil
}

// Accept returns an established connection that a peer has begun, nil if there
// is none.
func (l *Listener) Accept() *Conn {
	if len(l.ready) == 0 {
		return nil
	}
	x := l.ready[0]
	l.ready = l.ready[:copy(l.ready, l.ready[1:])]
	x.hosted.listener = nil
	l.h.happened(x)
	return x
}

// Close ends listening. Connections not yet accepted are reset.
func (l *Listener) Close(now sim.Time) {
	if l.h.listeners[l.Port] == l {
		delete(l.h.listeners, l.Port)
	}
	for _, x := range l.ready {
		x.Abort(now)
	}
	l.ready = nil
}

// Next returns a connection on which something has happened since its last
// return: bytes came, were acknowledged, or timed out. It returns nil if there
// is none. It does not return connections before Accept; their events become
// news with Accept.
func (h *Host) Next() *Conn {
	if len(h.news) == 0 {
		return nil
	}
	x := h.news[0]
	h.news = h.news[:copy(h.news, h.news[1:])]
	x.hosted.news = false
	return x
}

// happened notes that something has happened on a connection. It is news for
// the program, if the program has the connection, or the end of the handshake
// for the listener.
func (h *Host) happened(x *Conn) {
	l := x.hosted.listener
	switch {
	case l == nil:
		if !x.hosted.news {
			x.hosted.news = true
			h.news = append(h.news, x)
		}
	case x.hosted.ready:
	case x.Established():
		if l.begun--; h.listeners[l.Port] == l {
			x.hosted.ready = true
			l.ready = append(l.ready, x)
		} else {
			x.sendReset(x.snd.top, true) // the listener is closed
			x.end()
		}
	case x.state == Closed:
		l.begun--
	}
}

// touch marks the connection, so that the host checks whether it has something
// to send.
func (x *Conn) touch() {
	if h := x.hosted.host; h != nil && !x.hosted.touched {
		x.hosted.touched = true
		h.touched = append(h.touched, x)
	}
}

// Input takes a packet that has come. It returns an error, and counts it in
// Stats, if the packet is malformed or not for this host.
func (h *Host) Input(now sim.Time, packet []byte) error {
	p, err := Parse(packet)
	switch {
	case err != nil:
	case p.Dst != h.Addr:
		err = malformed("packet to %v at %v", p.Dst, h.Addr)
	case p.Protocol == ProtocolTCP:
		err = h.inputSegment(now, &p)
	case p.Protocol == ProtocolUDP:
		err = h.inputDatagram(&p)
	default:
		err = malformed("protocol %d", p.Protocol)
	}
	if err != nil {
		h.Stats.Malformed++
	}
	return err
}

func (h *Host) inputSegment(now sim.Time, p *Packet) error {
	s, err := ParseTCP(p)
	if err != nil {
		return err
	}
	id := connID{p.Src, s.DstPort, s.SrcPort}
	x := h.conns[id]
	begins := s.Flags&(SYN|ACK|RST) == SYN
	if x != nil && (x.state == Closed || x.state == TimeWait && begins && after(s.Seq, x.rcv.next) > 0 && h.listeners[s.DstPort] != nil) {
		h.begin(now, id, &s, x) // RFC 9293 §3.6.1: a new connection may follow one in TIME-WAIT
		return nil
	}
	if x == nil {
		h.begin(now, id, &s, nil)
		return nil
	}
	x.Input(now, &s)
	x.touch()
	h.happened(x)
	return nil
}

// begin handles a segment without a connection, or with one that has ended (RFC
// 9293 §3.10.7.1, §3.10.7.2).
func (h *Host) begin(now sim.Time, id connID, s *Segment, old *Conn) {
	l := h.listeners[id.local]
	switch {
	case l == nil || s.Flags&(ACK|RST) != 0:
		if a, due := Refuse(s); due && len(h.answers) < mostAnswers {
			h.Stats.Refused++
			h.answers = append(h.answers, answer{id.peer, a})
		}
	case s.Flags&SYN == 0:
	case l.begun+len(l.ready) >= l.backlog:
		h.Stats.Overflow++
	default:
		iss := h.first(now, id)
		if old != nil {
			if after(iss, old.snd.top) <= 0 {
				iss = old.snd.top + 1
			}
			old.end()
			old.touch()
		}
		x := Accept(h.config(), now, id.peer, s, iss)
		h.add(x, id)
		x.hosted.listener = l
		l.begun++
	}
}

// Output passes up to most packets, which the host may send now, to emit. emit
// must not keep them. Output reports whether there may be more.
func (h *Host) Output(now sim.Time, most int, emit func([]byte)) (more bool) {
	for ; len(h.answers) > 0; most-- {
		if most <= 0 {
			return true
		}
		a := h.answers[0]
		h.answers = h.answers[:copy(h.answers, h.answers[1:])]
		h.send(a.to, &a.s, emit)
	}
	for ; len(h.outgoing) > 0; most-- {
		if most <= 0 {
			return true
		}
		o := h.outgoing[0]
		h.outgoing = h.outgoing[:copy(h.outgoing, h.outgoing[1:])]
		h.waiting -= UDPHeaderBytes + len(o.d.Data)
		h.segment = o.d.Append(h.segment[:0], h.Addr, o.to)
		h.sendPacket(o.to, ProtocolUDP, emit)
	}
	for len(h.touched) > 0 {
		x := h.touched[0]
		before := x.Stats.Segments
		h.current, h.emit = x, emit
		more = x.Output(now, most, h.forward)
		if most -= int(x.Stats.Segments - before); more || most <= 0 && len(h.touched) > 1 {
			return true
		}
		h.touched = h.touched[:copy(h.touched, h.touched[1:])]
		x.hosted.touched = false
		h.settle(x)
	}
	return false
}

// settle updates a connection's deadline after it has sent everything it may,
// and forgets the connection if it is closed.
func (h *Host) settle(x *Conn) {
	if x.state == Closed {
		if id := (connID{x.Peer, x.Local, x.Remote}); h.conns[id] == x {
			delete(h.conns, id)
		}
	}
	switch d := x.Deadline(); {
	case d == x.hosted.deadline:
	case d == Never:
		heap.Remove(&h.timers, x.hosted.at)
		x.hosted.deadline = d
	case x.hosted.deadline == Never:
		x.hosted.deadline = d
		heap.Push(&h.timers, x)
	default:
		x.hosted.deadline = d
		heap.Fix(&h.timers, x.hosted.at)
	}
}

func (h *Host) send(to Addr, s *Segment, emit func([]byte)) {
	h.segment = s.Append(h.segment[:0], h.Addr, to)
	h.sendPacket(to, ProtocolTCP, emit)
}

// sendPacket sends the payload in h.segment.
func (h *Host) sendPacket(to Addr, protocol uint8, emit func([]byte)) {
	h.id++
	p := Packet{Src: h.Addr, Dst: to, Protocol: protocol, ID: h.id, Payload: h.segment}
	h.packet = p.Append(h.packet[:0])
	emit(h.packet)
}

// Deadline is the latest time for the next Expire, Never if there is none. It
// is valid after Output.
func (h *Host) Deadline() sim.Time {
	if len(h.timers) == 0 {
		return Never
	}
	return h.timers[0].hosted.deadline
}

// Expire handles timers that have ended. Call Output afterwards.
func (h *Host) Expire(now sim.Time) {
	for len(h.timers) > 0 && h.timers[0].hosted.deadline <= now {
		x := heap.Pop(&h.timers).(*Conn)
		x.hosted.deadline = Never
		x.Expire(now)
		x.touch()
		h.happened(x)
	}
}

// deadlines is a heap of connections. At equal deadlines the older connection
// is first.
type deadlines []*Conn

func (d deadlines) Len() int { return len(d) }

func (d deadlines) Less(i, j int) bool {
	a, b := &d[i].hosted, &d[j].hosted
	return a.deadline < b.deadline || a.deadline == b.deadline && a.number < b.number
}

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].hosted.at, d[j].hosted.at = i, j
}

// Push implements heap.Interface.
func (d *deadlines) Push(x any) {
	c := x.(*Conn)
	c.hosted.at = len(*d)
	*d = append(*d, c)
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	c := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return c
}
