package host

import "github.com/spinsim/spinsim/sim"

// Server is a resource that serves one request at a time, in the order of
// arrival: a bus, a memory controller, a core. The zero value is idle and has
// no bandwidth limit.
type Server struct {
	free  sim.Time
	busy  sim.Time
	bytes int64

	// Rate is the rate of service; 0: bytes take no time.
	Rate sim.Rate
}

// Reserve takes the server for n bytes, from now or as soon as it is free, and
// returns the beginning and end of the service.
func (s *Server) Reserve(now sim.Time, n int64) (start, end sim.Time) {
	s.bytes += n
	return s.Hold(now, s.Rate.Time(n))
}

// Hold takes the server for d, from now or as soon as it is free.
func (s *Server) Hold(now, d sim.Time) (start, end sim.Time) {
	start = max(now, s.free)
	end = start.Later(d)
	s.free = end
	s.busy += end - start
	return start, end
}

// Free returns when the server will have served all requests.
func (s *Server) Free() sim.Time { return s.free }

// Busy returns the time of service so far, including requests accepted for
// later.
func (s *Server) Busy() sim.Time { return s.busy }

// Bytes returns the number of bytes served so far, including requests accepted
// for later.
func (s *Server) Bytes() int64 { return s.bytes }
