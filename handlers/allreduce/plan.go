package allreduce

// Step is one step of a run: an action, a peer, and a level.
type Step uint32

// Actions of steps.
const (
	Send = iota // send the present vector to a level of a peer
	Add         // wait for the vector of a level and combine it with the present one
	Take        // wait for the vector of a level, which is the result
)

func step(do, level, peer uint32) Step { return Step(do<<16 | level<<8 | peer) }

// Do returns the action: Send, Add or Take.
func (s Step) Do() uint32 { return uint32(s) >> 16 }

// Level returns where the vector arrives, at this module or at the peer.
func (s Step) Level() uint32 { return uint32(s) >> 8 & 0xff }

// Peer returns the index of the receiving module in State.Peers, for a step
// that sends.
func (s Step) Peer() uint32 { return uint32(s) & 0xff }

// LevelsOf returns how many levels an algorithm needs for this many ranks.
func LevelsOf(algorithm, ranks uint32) uint32 {
	switch algorithm {
	case Boards:
		return Board - 1 + 2 + log(below(max(1, ranks/Board))) + 1
	case Ring:
		return 2
	}
	return 2 + log(below(max(1, ranks)))
}

// below returns the largest power of two up to n, which is at least 1.
func below(n uint32) uint32 {
	p := uint32(1)
	for p <= n/2 {
		p *= 2
	}
	return p
}

func log(power uint32) (k uint32) {
	for ; power > 1; power /= 2 {
		k++
	}
	return k
}

// Plan writes the steps of a run, and the ranks of the peers, for a descriptor
// that Legal accepts.
func (s *State) Plan() {
	s.Steps, s.Links = 0, 0
	c := &s.Call
	switch c.Algorithm {
	case Boards:
		s.boards(c.Rank, c.Ranks)
	case Doubling:
		s.doubling(c.Rank, c.Ranks, 1, 0, 1+log(below(c.Ranks)))
	case Ring:
		right := c.Rank + 1
		if right == c.Ranks {
			right = 0
		}
		next := s.peer(right)
		for _, p := range [...]Step{step(Add, 0, 0), step(Send, 0, next), step(Take, 1, 0), step(Send, 1, next), step(Add, 0, 0), step(Send, 1, next)} {
			s.add(p)
		}
	}
}

func (s *State) add(p Step) {
	s.Program[s.Steps] = p
	s.Steps++
}

// peer notes a rank to which vectors go.
func (s *State) peer(rank uint32) uint32 {
	s.Expected[s.Links] = rank
	s.Links++
	return s.Links - 1
}

// doubling: among the first 2*rem ranks, the even ones give their vectors to
// the odd ones, their neighbours, and get the result at the end. The remaining
// ranks, a power of two, swap at distances 1, 2, 4, … Ranks are counted in
// units of stride. Levels begin at first, and the result arrives at level last.
func (s *State) doubling(rank, ranks, stride, first, last uint32) {
	power := below(ranks)
	rem := ranks - power
	number := rank - rem
	outside := rank < 2*rem
	var neighbour uint32
	if outside {
		if neighbour = s.peer((rank ^ 1) * stride); rank&1 == 0 {
			s.add(step(Send, first, neighbour))
			s.add(step(Take, last, 0))
			return
		}
		s.add(step(Add, first, 0))
		number = rank / 2
	}
	level := first + 1
	for d := uint32(1); d < power; d *= 2 {
		other := number ^ d
		if other < rem {
			other = 2*other + 1
		} else {
			other += rem
		}
		s.add(step(Send, level, s.peer(other*stride)))
		s.add(step(Add, level, 0))
		level++
	}
	if outside {
		s.add(step(Send, last, neighbour))
	}
}

// boards: clients send to the server of their board. The server combines their
// vectors, in the order of clients, with its own. Servers swap with each other
// and send the result to their clients.
func (s *State) boards(rank, ranks uint32) {
	// levels 0 to 2: clients; 3: servers beyond a power of two; 4 and up:
	// servers
	last := 1 + Board + log(below(ranks/Board))
	if me := rank % Board; me != 0 {
		s.add(step(Send, me-1, s.peer(rank-me)))
		s.add(step(Take, last, 0))
		return
	}
	for client := range uint32(Board - 1) {
		s.add(step(Add, client, 0))
	}
	s.doubling(rank/Board, ranks/Board, Board, Board-1, last-1)
	for client := range uint32(Board - 1) {
		s.add(step(Send, last, s.peer(rank+client+1)))
	}
}

// Span returns the steps that a run of the call takes. Runs of a ring begin at
// different ranks: the run for block b of the vector begins at rank b+1 and
// ends at rank b, from where the result goes round once more.
func (s *State) Span(block uint32) (from, to uint16) {
	n := s.Call.Ranks
	if n == 1 {
		return 0, 0
	}
	if s.Call.Algorithm != Ring {
		return 0, uint16(s.Steps)
	}
	at := (s.Call.Rank + n - (block+1)%n) % n
	switch from, to = 0, 4; at {
	case n - 1:
		return 4, 6
	case n - 2:
		to = 3
	}
	if at == 0 {
		from = 1
	}
	return from, to
}

// Legal reports whether a descriptor is valid.
func (s *State) Legal(c *Descriptor) bool {
	size := Size(c.Type)
	return size != 0 && c.Bytes != 0 && c.Bytes%size == 0 && c.Op >= Sum && c.Op <= Max && c.Rank < c.Ranks && c.Ranks <= 1<<NodeBits &&
		c.Algorithm >= Boards && c.Algorithm <= Ring && (c.Algorithm != Boards || c.Ranks%Board == 0) && LevelsOf(c.Algorithm, c.Ranks) <= s.Levels
}
