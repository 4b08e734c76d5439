package main

import (
	"math/bits"

	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/spin"
)

// flight is how many compare-and-swaps a handler has on the bus at once.
const flight = 16

// skipped is the handle of a swap that was not needed.
const skipped spin.Handle = -1 << 16

// relax carries out updates, and wakes a worker if it has made a distance
// smaller.
func relax(s *graph.State, list []graph.Update) bool {
	var handles [flight]spin.Handle
	var labels [flight]uint64
	improved, swaps := uint64(0), uint64(0)
	added := false
	spin.FAdd(&s.Counts.Updates, uint64(len(list)))
	for len(list) > 0 {
		some := list
		if len(some) > flight {
			some = list[:flight]
		}
		list = list[len(some):]
		for i := range some {
			u := &some[i]
			if u.Vertex >= s.Local {
				return false
			}
			guess := *seen(s, u.Vertex)
			if handles[i] = skipped; u.Label>>32 >= guess>>32 {
				continue // labels only become smaller: the one in host memory is no larger
			}
			labels[i] = u.Label
			handles[i] = spin.DMACASNB(spin.HandlerHostMem, place(u.Vertex), guess, u.Label, &u.Label)
			swaps++
		}
		for i := range some {
			if handles[i] == skipped {
				continue
			}
			r := handles[i].Wait()
			if r == spin.NoSpace {
				some[i].Label, r = graph.NoLabel, 0 // it did not begin: the loop does it
			}
			for r == 0 && some[i].Label>>32 > labels[i]>>32 { // another update was faster
				var found uint64
				r = spin.DMACAS(spin.HandlerHostMem, place(some[i].Vertex), some[i].Label, labels[i], &found)
				some[i].Label = found
				swaps++
			}
			if r.Failed() {
				return false
			}
			if r == 1 {
				some[i].Label = labels[i]
				improved++
				added = wait(s, some[i].Vertex) || added
			}
			if s.Seen != 0 {
				*seen(s, some[i].Vertex) = some[i].Label
			}
		}
	}
	spin.FAdd(&s.Counts.Swaps, swaps)
	spin.FAdd(&s.Counts.Improved, improved)
	return !added || wake(s)
}

// never is the copy of any vertex's label if there are no copies.
var never uint64 = graph.NoLabel

// seen returns the copy of a vertex's label. The label in host memory is the
// same or smaller.
func seen(s *graph.State, vertex uint32) *uint64 {
	if s.Seen == 0 {
		return &never
	}
	return spin.At[uint64](spin.After(s) + spin.Ptr(s.Seen+8*vertex))
}

// place returns the place of a vertex's label in host memory.
func place(vertex uint32) uint64 { return uint64(vertex) * graph.VertexSize }

// wait sets the bit of a vertex, and reports whether it needs a worker. It
// needs none if its word already had bits.
func wait(s *graph.State, vertex uint32) bool {
	if set(word(s, s.Waiting, vertex>>6), vertex) != 0 {
		return false // a worker that takes the others takes it, too
	}
	set(word(s, s.Summary, vertex>>12), vertex>>6)
	spin.FAdd(&s.Pending, 1)
	return true
}

// word returns a word of bits.
func word(s *graph.State, at, i uint32) *uint64 {
	return spin.At[uint64](spin.After(s) + spin.Ptr(at+8*i))
}

// set sets a bit of a word, and returns the old word.
func set(w *uint64, bit uint32) uint64 {
	for {
		now := *w
		if spin.CAS(w, now, now|1<<(bit&63)) {
			return now
		}
	}
}

// take gives a worker the vertices of a word that is not 0. A worker that has
// cleared the bit of a word owns the word. A handler that sets a bit in it
// meanwhile either finds other bits there, and the worker takes its bit with
// them, or finds none and sets the bit of the word again.
func take(s *graph.State, w *graph.Worker) bool {
	line, mask := s.Cursor>>6, minusOne<<(s.Cursor&63)
	for n := uint32(0); n <= s.Lines && int64(s.Pending) > 0; n++ {
		at := word(s, s.Summary, line)
		for some := *at & mask; some != 0; some = *at & mask {
			bit := uint32(bits.TrailingZeros64(some))
			now := *at
			if now>>bit&1 == 0 || !spin.CAS(at, now, now&^(1<<bit)) {
				continue
			}
			spin.FAdd(&s.Pending, minusOne)
			i := line<<6 | bit
			s.Cursor = i + 1
			if s.Cursor >= s.Lines<<6 {
				s.Cursor = 0
			}
			if w.First, w.Bits = i<<6, empty(word(s, s.Waiting, i)); w.Bits != 0 {
				return true
			}
		}
		mask = minusOne
		if line++; line == s.Lines {
			line = 0
		}
	}
	return false
}

// empty makes a word 0, and returns the old word.
func empty(w *uint64) uint64 {
	for {
		if now := *w; spin.CAS(w, now, 0) {
			return now
		}
	}
}

// wake wakes an idle worker, if there is one. Other workers look for vertices
// before they become idle.
func wake(s *graph.State) bool {
	for {
		idle := s.Idle
		if idle == 0 {
			return true
		}
		if spin.CAS(&s.Idle, idle, idle&(idle-1)) {
			spin.FAdd(&s.Deficit, 1)
			return again(s, uint64(bits.TrailingZeros64(idle)))
		}
	}
}

// again lets a worker continue by a message to self.
func again(s *graph.State, n uint64) bool {
	op := spin.Op{PTIndex: s.PT, MatchBits: graph.WorkBits, HdrData: n}
	for {
		if r := spin.ToSelf(&op); r != spin.NoSpace {
			return !r.Failed()
		}
		spin.Yield() // as many commands of handlers are pending as allowed
	}
}
