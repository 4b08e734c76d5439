// Package breakdown says where time went: it gives every picosecond of an
// interval to exactly one of several categories, so that their times add up to
// the length of the interval.
//
//	account.go  an Account: spans of categories in order of priority, and the attribution of an interval to them
//	tap.go      a Tap: a sim.Tracer that shows what a run draws on its timeline to whoever fills an Account, and passes it on
//
// Where things happen at once the category that was named first has the time:
// what stands behind is what is left when all before it are taken away. An
// observer like any tracer: it changes no result, and a run without one pays
// nothing.
package breakdown

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// Account collects when what was going on. Categories are numbered from 0, the
// first has the highest priority. Spans may come in any order and overlap.
type Account struct {
	categories []category
	chains     map[uint64]link
}

// category is when one thing was going on.
type category struct {
	spans  []span     // sorted and apart if sorted
	sorted bool       // since the last one was added
	begins []sim.Time // marks of Begin and End, until somebody wants to know
	ends   []sim.Time
}

type span struct{ from, to sim.Time }

// link is the last thing that was seen of a chain.
type link struct {
	category int
	end      sim.Time
}

// New returns an account of so many categories, at least 1.
func New(categories int) *Account {
	return &Account{categories: make([]category, categories), chains: map[uint64]link{}}
}

// Span notes that a category was going on. Spans without a length and those
// that end before they begin count for nothing.
func (a *Account) Span(c int, from, to sim.Time) {
	if to <= from {
		return
	}
	k := &a.categories[c]
	if n := len(k.spans); n > 0 {
		if last := &k.spans[n-1]; from >= last.from && from <= last.to { // by far the most
			last.to = max(last.to, to)
			return
		}
	}
	k.spans = append(k.spans, span{from, to})
	k.sorted = false
}

// Begin notes that a category goes on from a time to the first End at that time
// or later; without one, for ever.
func (a *Account) Begin(c int, at sim.Time) {
	a.categories[c].begins = append(a.categories[c].begins, at)
}

// End is where what has begun before ends.
func (a *Account) End(c int, at sim.Time) { a.categories[c].ends = append(a.categories[c].ends, at) }

// NoGap is what a rule of Chain says of time that belongs to nobody.
const NoGap = -1

// Chain is Span of a part of something longer, such as of a message on its way.
// Between the end of the last part and the beginning of this one the category
// goes on that gap says for the categories of the two; nil: that of this part.
func (a *Account) Chain(key uint64, c int, from, to sim.Time, gap func(before, after int) int) {
	before, known := a.chains[key]
	if known && from > before.end {
		between := c
		if gap != nil {
			between = gap(before.category, c)
		}
		if between != NoGap {
			a.Span(between, before.end, from)
		}
	}
	a.Span(c, from, to)
	a.chains[key] = link{c, max(before.end, to)}
}

// Break ends a chain: a part that comes later begins a new one.
func (a *Account) Break(key uint64) { delete(a.chains, key) }

// settle makes the spans of a category sorted and apart.
func (k *category) settle() {
	if len(k.begins) > 0 {
		k.pair()
	}
	if k.sorted || len(k.spans) == 0 {
		return
	}
	slices.SortFunc(k.spans, func(x, y span) int {
		switch {
		case x.from < y.from:
			return -1
		case x.from > y.from:
			return 1
		}
		return 0
	})
	n := 0
	for _, s := range k.spans[1:] {
		if last := &k.spans[n]; s.from <= last.to {
			last.to = max(last.to, s.to)
			continue
		}
		n++
		k.spans[n] = s
	}
	k.spans = k.spans[:n+1]
	k.sorted = true
}

// pair adds the spans that marks mean. Marks stay: those to come may end what has no end yet.
func (k *category) pair() {
	slices.Sort(k.begins)
	slices.Sort(k.ends)
	i := 0
	for _, from := range k.begins {
		for i < len(k.ends) && k.ends[i] < from {
			i++
		}
		to := sim.MaxTime
		if i < len(k.ends) {
			to = k.ends[i]
		}
		if to > from {
			k.spans = append(k.spans, span{from, to})
			k.sorted = false
		}
	}
	k.begins = k.begins[:0]
}

// Attribute adds to each of times what its category has of the interval, and to
// the last, of which there is one more than categories, what nobody has. It is
// for the time after everything was noted: what has begun without an end goes
// on for ever from then on. It panics if the number of times is wrong: a
// programmer's mistake.
func (a *Account) Attribute(times []sim.Time, from, to sim.Time) {
	if len(times) != len(a.categories)+1 {
		panic(fmt.Sprintf("breakdown: %d times, expected one for each of %d categories and one for the rest", len(times), len(a.categories))) //lint:panic programmer's mistake
	}
	if to <= from {
		return
	}
	left, next := []span{{from, to}}, []span(nil)
	for c := range a.categories {
		k := &a.categories[c]
		k.settle()
		var taken sim.Time
		next, taken = without(next[:0], left, k.within(from, to))
		times[c] += taken
		left, next = next, left
	}
	for _, s := range left {
		times[len(times)-1] += s.to - s.from
	}
}

// within returns the spans that have something between two times.
func (k *category) within(from, to sim.Time) []span {
	first, _ := slices.BinarySearchFunc(k.spans, from, func(s span, t sim.Time) int {
		if s.to <= t {
			return -1
		}
		return 1
	})
	end := first
	for end < len(k.spans) && k.spans[end].from < to {
		end++
	}
	return k.spans[first:end]
}

// without appends to rest what spans leave of a list, and returns how much they
// take. Both are sorted, each is apart.
func without(rest, list, spans []span) (left []span, taken sim.Time) {
	for _, s := range list {
		for len(spans) > 0 && spans[0].to <= s.from {
			spans = spans[1:]
		}
		at := s.from
		for _, x := range spans {
			if x.from >= s.to {
				break
			}
			if x.from > at {
				rest = append(rest, span{at, x.from})
			}
			begin, end := max(at, x.from), min(s.to, x.to)
			taken += end - begin
			at = end
		}
		if at < s.to {
			rest = append(rest, span{at, s.to})
		}
	}
	return rest, taken
}
