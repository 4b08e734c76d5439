package laws

import "github.com/spinsim/spinsim/spin"

var spray = &Law{Name: "spray", Short: "all paths in turn, whatever becomes of the packets (oblivious spraying)", Handle: Spray}

var recycle = &Law{
	Name: "recycle", Short: "paths whose packets came unmarked again, else the next without a penalty (htsim's default: REPS and a bitmap)",
	Numbers: []Number{{"mark_penalty", 1, 0, "turns that a path misses after a mark"}, {"trim_penalty", 4, 0, "after a trimmed packet"}},
	Handle:  Recycle,
}

// RecycleNumbers writes Recycle's numbers into a state, for its module.
func RecycleNumbers(s *State) { recycle.Init(s, nil) }

// A path choice has these words of state first.
const (
	wayMark = iota // Recycle: see its numbers
	wayTrim
	wayNext  // index of the next path in turn
	wayXor   // the index is changed by it: another order each round
	wayDraws // how many numbers were drawn
	wayHead  // Recycle: the oldest path of the queue
	wayCount // Recycle: paths in the queue
	wayPenalties
)

// Recycle has four bits of penalty for each path, and a queue of bytes.
const (
	wayPaths  = 256 // the most paths
	wayQueue  = wayPenalties + wayPaths/16
	wayQueued = (Words - wayQueue) * 8
	wayMost   = 15
)

// draw returns a number that depends on the flow and on how many it has drawn:
// the finaliser of splitmix64.
func draw(f *spin.Flow, s *State) uint64 {
	s[wayDraws]++
	x := f.Seed + s[wayDraws]*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// paths is how many paths a choice uses: a power of two.
func paths(f *spin.Flow) uint64 {
	n := uint64(1)
	for 2*n <= min(uint64(f.Paths), wayPaths) {
		n *= 2
	}
	return n
}

// turn returns the next path in turn.
func turn(f *spin.Flow, s *State, n uint64) uint64 {
	path := (s[wayNext] ^ s[wayXor]) & (n - 1)
	if s[wayNext]++; s[wayNext] == n {
		s[wayNext], s[wayXor] = 0, draw(f, s)
	}
	return path
}

// Spray takes the next path in turn.
func Spray(f *spin.Flow, s *State) {
	switch f.Event {
	case spin.FlowBegins:
		s[wayXor] = draw(f, s)
	case spin.FlowSends:
		f.Path = turn(f, s, paths(f))
	}
}

// Recycle sends on a path again from which an acknowledgement came without
// a mark. If there is none, it takes the next path in turn that has no penalty.
func Recycle(f *spin.Flow, s *State) {
	n := paths(f)
	switch f.Event {
	case spin.FlowBegins:
		s[wayXor] = draw(f, s)
	case spin.FlowSends:
		if s[wayCount] > 0 {
			at := s[wayHead]
			f.Path = s[wayQueue+at/8] >> (at % 8 * 8) & 0xff
			s[wayHead] = (at + 1) % wayQueued
			s[wayCount]--
			return
		}
		f.Path = spared(f, s, n)
	case spin.FlowAcked:
		if f.Marked != 0 {
			penalize(f, s, s[wayMark])
		} else if s[wayCount] < wayQueued {
			at := (s[wayHead] + s[wayCount]) % wayQueued
			word := &s[wayQueue+at/8]
			*word = *word&^(0xff<<(at%8*8)) | f.Path<<(at%8*8)
			s[wayCount]++
		}
	case spin.FlowTrimmed:
		penalize(f, s, s[wayTrim])
	}
}

// penalty is the word and the shift of a path's penalty.
func penalty(s *State, path uint64) (word *uint64, shift uint64) {
	return &s[wayPenalties+path/16], path % 16 * 4
}

func penalize(f *spin.Flow, s *State, by uint64) {
	word, shift := penalty(s, f.Path)
	now := *word >> shift & wayMost
	*word += (min(now+by, wayMost) - now) << shift
}

// spared returns the next path in turn without a penalty. Only the first that
// is passed over loses one point. If all have one, the last one serves.
func spared(f *spin.Flow, s *State, n uint64) uint64 {
	path := turn(f, s, n)
	for i := range n {
		word, shift := penalty(s, path)
		if *word>>shift&wayMost == 0 {
			break
		}
		if i == 0 {
			*word -= 1 << shift
		}
		path = turn(f, s, n)
	}
	return path
}
