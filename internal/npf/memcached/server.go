package memcached

import (
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Conn is a stream of bytes to a client, as an inet.Conn is, or one of
// internal/npf/stack. Its methods do not block.
type Conn interface {
	// Readable is how many bytes Read would move; ended: nothing will come behind them.
	Readable() (n int, ended bool)
	// Read moves bytes that have come to b, and returns how many.
	Read(b []byte) int
	// Write takes bytes to be sent, as many as there is room for, and returns how many.
	Write(b []byte) int
	// Close says that nothing more will be written.
	Close()
}

// readBytes is how many bytes are read at a time (READ_BUFFER_SIZE).
const readBytes = 16 << 10

// Server is a store that a process serves: one thread, as memcached -t 1.
type Server struct {
	Store *Store
	// Operation is what the server's own instructions take for a command,
	// beside its accesses to memory and the copies of its sockets.
	Operation sim.Time

	p      *runtime.Proc
	memory *ProcMemory
	buffer []byte
}

// NewServer makes a process, before it first waits, a server with an empty
// store. What is stored before Begin takes no time.
func NewServer(p *runtime.Proc, c Config) (*Server, error) {
	m := NewProcMemory(p)
	s, err := NewStore(m, c)
	if err != nil {
		return nil, err
	}
	return &Server{Store: s, p: p, memory: m, buffer: make([]byte, readBytes)}, nil
}

// Begin ends setting up: from now on accesses take their time.
func (s *Server) Begin() { s.memory.Begin() }

// Advance does what can be done on a connection: it reads commands, does them,
// and writes answers as long as there is room for them. It reports whether the
// connection has ended, and closes it then.
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
