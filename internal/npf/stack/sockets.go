package stack

import (
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

// Conn is a TCP connection. Its methods do not block. Read and Write take the
// time of a copy.
type Conn struct {
	s *Stack
	x *inet.Conn
	// Of is for the program's own data about the connection.
	Of any
}

// conn returns the stack's connection for a connection of the host.
func (s *Stack) conn(x *inet.Conn) *Conn {
	if x == nil {
		return nil
	}
	c := s.conns[x]
	if c == nil {
		c = &Conn{s: s, x: x}
		s.conns[x] = c
	}
	return c
}

// Dial begins a connection to a port of another stack.
func (s *Stack) Dial(to inet.Addr, port uint16) (*Conn, error) {
	if s.closed {
		return nil, ErrClosed
	}
	x, err := s.host.Dial(s.p.Now(), to, port)
	return s.conn(x), err
}

// Listener is a port that takes connections.
type Listener struct {
	s *Stack
	l *inet.Listener
}

// Listen takes connections to a port. At most backlog of them may wait for
// Accept.
func (s *Stack) Listen(port uint16, backlog int) (*Listener, error) {
	if s.closed {
		return nil, ErrClosed
	}
	l, err := s.host.Listen(port, backlog)
	if err != nil {
		return nil, err
	}
	return &Listener{s, l}, nil
}

// Accept returns an established connection that a peer has begun; nil: there is
// none now.
func (l *Listener) Accept() *Conn { return l.s.conn(l.l.Accept()) }

// Close ends listening and resets connections that nobody has accepted.
func (l *Listener) Close() { l.l.Close(l.s.p.Now()) }

// Next returns a connection with news since its last return: bytes arrived,
// bytes were acknowledged, or it failed. nil: there is none.
func (s *Stack) Next() *Conn { return s.conn(s.host.Next()) }

// Read moves arrived bytes to b, and returns how many.
func (c *Conn) Read(b []byte) int {
	n := c.x.Read(b)
	if n > 0 {
		c.s.p.Stream(int64(n), int64(n))
	}
	return n
}

// Readable returns how many bytes Read would move. ended: no bytes follow them.
func (c *Conn) Readable() (n int, ended bool) { return c.x.Readable() }

// Write takes bytes to send, as many as there is room for, and returns how
// many.
func (c *Conn) Write(b []byte) int {
	n := c.x.Write(b)
	if n > 0 {
		c.s.p.Stream(int64(n), int64(n))
	}
	return n
}

// Room returns how many bytes Write would take.
func (c *Conn) Room() int { return c.x.Room() }

// Close ends writing.
func (c *Conn) Close() { c.x.Close() }

// Abort resets the connection.
func (c *Conn) Abort() { c.x.Abort(c.s.p.Now()) }

// Forget removes the stack's data about a connection. Afterwards Next may
// return another Conn for it. Call it for connections that have ended.
func (c *Conn) Forget() { delete(c.s.conns, c.x) }

// Established reports whether both sides have agreed.
func (c *Conn) Established() bool { return c.x.Established() }

// Done reports whether the peer has acknowledged everything, including the end.
func (c *Conn) Done() bool { return c.x.Done() }

// Err returns why the connection has failed, an *inet.Failure; nil: it has not.
func (c *Conn) Err() error { return c.x.Err() }

// TCP returns the state machine, for its statistics.
func (c *Conn) TCP() *inet.Conn { return c.x }

// UDP is a socket of datagrams.
type UDP struct {
	s *Stack
	u *inet.Socket
}

// UDP opens a socket on a port.
func (s *Stack) UDP(port uint16) (*UDP, error) {
	if s.closed {
		return nil, ErrClosed
	}
	u, err := s.host.UDP(port)
	if err != nil {
		return nil, err
	}
	return &UDP{s, u}, nil
}

// Send sends a datagram at the next Wait or Flush; it may get lost.
func (u *UDP) Send(to inet.Addr, port uint16, data []byte) error {
	u.s.p.Stream(int64(len(data)), int64(len(data)))
	return u.u.Send(to, port, data)
}

// Receive takes a datagram; false: there is none now.
func (u *UDP) Receive() (r inet.Received, is bool) {
	if r, is = u.u.Receive(); is {
		u.s.p.Stream(int64(len(r.Data)), int64(len(r.Data)))
	}
	return r, is
}

// Dropped returns how many datagrams were lost because the queue was full.
func (u *UDP) Dropped() int64 { return u.u.Dropped }

// Close frees the port.
func (u *UDP) Close() { u.u.Close() }

// Sleep waits for a time and serves the connections meanwhile.
func (s *Stack) Sleep(d sim.Time) error {
	for until := s.p.Now() + d; s.p.Now() < until; {
		if err := s.Wait(until); err != nil {
			return err
		}
	}
	return nil
}
