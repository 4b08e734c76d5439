package host

import "github.com/spinsim/spinsim/sim"

// Server is a resource that serves one request at a time in the order they
// come: a bus, a memory controller, a core. The zero value is idle and has no
// bandwidth limit.
type Server struct {
	free  sim.Time
	busy  sim.Time
	bytes int64

	// Rate is how fast bytes are served; 0: they take no time.
	Rate sim.Rate
}

// Reserve takes the server for n bytes as soon after now as it is free and
// returns when service begins and ends.
func (s *Server) Reserve(now sim.Time, n int64) (start, end sim.Time) {
	s.bytes += n
	return s.Hold(now, s.Rate.Time(n))
}

// Hold takes the server for the duration d as soon after now as it is free.
func (s *Server) Hold(now, d sim.Time) (start, end sim.Time) {
	start = max(now, s.free)
	end = start.Later(d)
	s.free = end
	s.busy += end - start
	return start, end
}

// Free is when the server has served all it was given.
func (s *Server) Free() sim.Time { return s.free }

// Busy is the time spent serving so far, including requests accepted for later.
func (s *Server) Busy() sim.Time { return s.busy }

// Bytes is the number of bytes served so far, including requests accepted for later.
func (s *Server) Bytes() int64 { return s.bytes }
