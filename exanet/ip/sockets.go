package ip

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// ErrPort means that a port is in use, or that no port is free.
var ErrPort = errors.New("ip: the port is in use")

// Sockets are the sockets of a process. Only Wait blocks, as in a program with
// an event loop.
type Sockets struct {
	k        *kernel
	p        *runtime.Proc
	ct       portals.Handle
	seen     uint64
	conns    []*Conn
	accepted []*Conn
}

// Open gives a process its sockets. It takes no virtual time.
func (n *Network) Open(p *runtime.Proc) (*Sockets, error) {
	k := n.kernels[p.Rank()]
	if k == nil {
		return nil, fmt.Errorf("ip: node %d has no IP", p.Rank())
	}
	u := handlers.NewSetup("ip", p)
	s := &Sockets{k: k, p: p, ct: u.Counter("something on a socket")}
	if u.Err != nil {
		return nil, u.Err
	}
	k.sockets = append(k.sockets, s)
	return s, nil
}

// wake makes the program look at its sockets.
func (s *Sockets) wake() {
	if err := s.p.NI().Objects().CTInc(s.ct, portals.CTEvent{Success: 1}); err != nil {
		s.k.strange++ // its process has ended
	}
}

// Wait waits for a socket event since the last Wait, or until a time
// (runtime.Forever: no end). It also runs the timers of connections.
func (s *Sockets) Wait(until sim.Time) error {
	for {
		v, err := s.p.NI().Objects().CTGet(s.ct)
		if err != nil {
			return err
		}
		if v.Success > s.seen {
			s.seen = v.Success
			for _, c := range s.conns {
				if c.blocked {
					c.blocked = false
					c.output(s.p)
				}
			}
			return nil
		}
		now := s.p.Now()
		if until != runtime.Forever && now >= until {
			return nil
		}
		next := inet.Never
		if until != runtime.Forever {
			next = until
		}
		for _, c := range s.conns {
			if d := c.x.Deadline(); d <= now {
				c.x.Expire(now)
				c.output(s.p)
			}
			next = min(next, c.x.Deadline())
		}
		timeout := runtime.Forever
		if next != inet.Never {
			timeout = max(0, next-s.p.Now())
		}
		_, _, err = s.p.NI().CTPollAt([]portals.Handle{s.ct}, []uint64{s.seen + 1}, timeout, s.k.net.spec.Wake)
		if err != nil && !errors.Is(err, portals.ErrCTNoneReached) {
			return err
		}
	}
}

// Conn is a TCP connection.
type Conn struct {
	s         *Sockets
	to        inet.Addr
	x         *inet.Conn
	sending   bool // output is running, and will also send later data
	blocked   bool // waits for room of the interface
	announced bool
}

// Dial begins a connection to a port of a node's address: AddrOf or
// ManagementAddrOf.
func (s *Sockets) Dial(to inet.Addr, port uint16) (*Conn, error) {
	k := s.k
	id := connID{k.self(to), to, 0, port}
	for range 1 << 14 {
		if k.port++; k.port <= firstPort {
			k.port = firstPort + 1
		}
		id.localPort = k.port
		if k.conns[id] == nil {
			c := &Conn{s: s, to: to, x: inet.Dial(k.config(to), k.port, to, port, k.iss())}
			k.conns[id] = c
			s.conns = append(s.conns, c)
			s.p.Compute(k.net.spec.Syscall)
			c.output(s.p)
			return c, nil
		}
	}
	return nil, ErrPort
}

// Listen accepts connections to a port.
func (s *Sockets) Listen(port uint16) error {
	if s.k.listeners[port] != nil {
		return fmt.Errorf("%w: %d", ErrPort, port)
	}
	s.k.listeners[port] = s
	return nil
}

// Accept returns a connection that another node has begun, or nil if there is
// none now.
func (s *Sockets) Accept() *Conn {
	if len(s.accepted) == 0 {
		return nil
	}
	s.p.Compute(s.k.net.spec.Syscall)
	c := s.accepted[0]
	s.accepted = s.accepted[1:]
	return c
}

// Write sends as many bytes as the connection has room for, and returns how
// many.
func (c *Conn) Write(b []byte) int {
	c.s.p.Compute(c.s.k.net.spec.Syscall)
	n := c.x.Write(b)
	c.s.p.Stream(int64(n), int64(n))
	c.output(c.s.p)
	return n
}

// Room returns how many bytes Write would take.
func (c *Conn) Room() int { return c.x.Room() }

// Read moves received bytes to b and returns how many. ended means that no more
// will follow.
func (c *Conn) Read(b []byte) (n int, ended bool) {
	c.s.p.Compute(c.s.k.net.spec.Syscall)
	n = c.x.Read(b)
	left, ended := c.x.Readable()
	c.s.p.Stream(int64(n), int64(n))
	c.output(c.s.p)
	return n, ended && left == 0
}

// Readable returns how many bytes Read would move, without a system call.
func (c *Conn) Readable() (n int, ended bool) { return c.x.Readable() }

// Close ends the outgoing stream: the caller will write no more.
func (c *Conn) Close() {
	c.s.p.Compute(c.s.k.net.spec.Syscall)
	c.x.Close()
	c.output(c.s.p)
}

// Done reports whether the other side has acknowledged all data, and the end of
// it.
func (c *Conn) Done() bool { return c.x.Done() }

// Established reports whether the TCP handshake is complete.
func (c *Conn) Established() bool { return c.x.Established() }

// Err returns why the connection has failed (refused or reset by the other
// side), or nil.
func (c *Conn) Err() error { return c.x.Err() }

// Stats returns the connection's statistics and its smoothed round trip.
func (c *Conn) Stats() (inet.Stats, sim.Time) {
	_, rtt := c.x.RTO()
	return c.x.Stats, rtt
}

// output sends the connection's segments one after the other on the core of p,
// unless output already runs. While the interface has no room the connection
// keeps its data, like Linux (TCP small queues): the interface drops none of
// it.
func (c *Conn) output(p *runtime.Proc) {
	if c.sending {
		return
	}
	k := c.s.k
	c.sending = true
	for { // more data may come meanwhile
		if !k.room(c.to) {
			c.blocked = true
			break
		}
		var packet []byte
		c.x.Output(p.Now(), 1, func(s *inet.Segment) {
			packet = k.packet(c.to, inet.ProtocolTCP, s.Append(make([]byte, 0, len(s.Data)+2*inet.TCPHeaderBytes), k.self(c.to), c.to))
		})
		if packet == nil {
			break
		}
		k.send(p, c.to, packet)
	}
	c.sending = false
}

// UDP is a datagram socket.
type UDP struct {
	s       *Sockets
	port    uint16
	queue   []Datagram
	bytes   int
	Dropped uint64 // received datagrams without room in the buffer
	Refused uint64 // datagrams for which the interface had no room
}

// Datagram is a received datagram.
type Datagram struct {
	From inet.Addr
	Port uint16
	Data []byte
}

// UDP opens a datagram socket on a port.
func (s *Sockets) UDP(port uint16) (*UDP, error) {
	if s.k.datagrams[port] != nil {
		return nil, fmt.Errorf("%w: %d", ErrPort, port)
	}
	u := &UDP{s: s, port: port}
	s.k.datagrams[port] = u
	return u, nil
}

// MaxDatagram returns the maximum bytes of a datagram to an address. Packets
// are not fragmented.
func (s *Sockets) MaxDatagram(to inet.Addr) int {
	return s.k.mtu(to) - inet.HeaderBytes - inet.UDPHeaderBytes
}

// Send sends a datagram, which may be lost.
func (u *UDP) Send(to inet.Addr, port uint16, data []byte) error {
	if most := u.s.MaxDatagram(to); len(data) > most {
		return fmt.Errorf("ip: datagram of %d bytes to %v, expected at most %d", len(data), to, most)
	}
	k, p := u.s.k, u.s.p
	p.Compute(k.net.spec.Syscall)
	p.Stream(int64(len(data)), int64(len(data)))
	d := inet.Datagram{SrcPort: u.port, DstPort: port, Data: data}
	if !k.send(p, to, k.packet(to, inet.ProtocolUDP, d.Append(nil, k.self(to), to))) {
		u.Refused++
	}
	return nil
}

// Receive takes a datagram. found is false if there is none now.
func (u *UDP) Receive() (d Datagram, found bool) {
	if len(u.queue) == 0 {
		return d, false
	}
	d = u.queue[0]
	u.queue = u.queue[:copy(u.queue, u.queue[1:])]
	u.bytes -= len(d.Data)
	u.s.p.Compute(u.s.k.net.spec.Syscall)
	u.s.p.Stream(int64(len(d.Data)), int64(len(d.Data)))
	return d, true
}
