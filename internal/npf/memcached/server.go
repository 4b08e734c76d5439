package memcached

import (
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Conn is a stream of bytes to a client, for example an inet.Conn or a
// connection of internal/npf/stack. Its methods do not block.
type Conn interface {
	// Readable returns how many bytes Read would move. ended: no bytes follow
	// them.
	Readable() (n int, ended bool)
	// Read moves arrived bytes to b, and returns how many.
	Read(b []byte) int
	// Write takes bytes to send, as many as there is room for, and returns how
	// many.
	Write(b []byte) int
	// Close ends writing.
	Close()
}

// readBytes is the number of bytes in one read (READ_BUFFER_SIZE).
const readBytes = 16 << 10

// Server is a store that a process serves: one thread, like memcached -t 1.
type Server struct {
	Store *Store
	// Operation is the time of the server's own instructions for a command,
	// besides its accesses to memory and the copies of its sockets.
	Operation sim.Time

	p      *runtime.Proc
	memory *ProcMemory
	buffer []byte
}

// NewServer makes a process a server with an empty store. Call it before the
// process first waits. Stores before Begin take no time.
func NewServer(p *runtime.Proc, c Config) (*Server, error) {
	m := NewProcMemory(p)
	s, err := NewStore(m, c)
	if err != nil {
		return nil, err
	}
	return &Server{Store: s, p: p, memory: m, buffer: make([]byte, readBytes)}, nil
}

// Begin ends the setup: from now on accesses take time.
func (s *Server) Begin() { s.memory.Begin() }

// Advance serves a connection without waiting. It reads commands, executes
// them, and writes answers as long as there is room. When the connection has
// ended, Advance closes it and returns true.
func (s *Server) Advance(x *Session, c Conn) (ended bool) {
	for {
		if out := x.Output(); len(out) > 0 {
			x.Sent(c.Write(out))
			if len(x.Output()) > 0 {
				return false
			}
		}
		before := x.Commands()
		if x.Step(s.p.Now()) {
			d := s.memory.Take()
			if n := x.Commands() - before; n > 0 {
				d = d.Plus(sim.Time(n) * s.Operation)
			}
			if d > 0 {
				s.p.Compute(d)
			}
			continue
		}
		n, over := c.Readable()
		if x.Closed() || n == 0 && over {
			c.Close()
			return true
		}
		if n = c.Read(s.buffer); n == 0 {
			return false
		}
		x.Feed(s.buffer[:n])
	}
}
