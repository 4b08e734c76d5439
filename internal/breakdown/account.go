// Package breakdown shows where time went. It assigns every picosecond of an
// interval to exactly one category, so that the times of the categories add up
// to the length of the interval.
//
//	account.go  an Account: spans of categories in order of priority, and the attribution of an interval to them
//	tap.go      a Tap: a sim.Tracer that passes a run's timeline to the code that fills an Account, and to the next tracer
//
// If several categories are active at once, the first one gets the time. The
// others get only what is left. Like any tracer it only observes: it changes no
// result, and a run without it costs nothing.
package breakdown

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// Account collects the spans of categories. Categories are numbered from 0. The
// first has the highest priority. Spans may come in any order and overlap.
type Account struct {
	categories []category
	chains     map[uint64]link
}

// category has the spans of one category.
type category struct {
	spans  []span     // if sorted is set: in order and disjoint
	sorted bool       // still true since the last span was added
	begins []sim.Time // marks of Begin and End, not yet turned into spans
	ends   []sim.Time
}

type span struct{ from, to sim.Time }

// link is the last part of a chain.
type link struct {
	category int
	end      sim.Time
}

// New returns an account with the given number of categories, at least 1.
func New(categories int) *Account {
	return &Account{categories: make([]category, categories), chains: map[uint64]link{}}
}

// Span records that a category was active. It ignores spans of zero or negative
// length.
func (a *Account) Span(c int, from, to sim.Time) {
	if to <= from {
		return
	}
	k := &a.categories[c]
	if n := len(k.spans); n > 0 {
		if last := &k.spans[n-1]; from >= last.from && from <= last.to { // by far the most frequent case
			last.to = max(last.to, to)
			return
		}
	}
	k.spans = append(k.spans, span{from, to})
	k.sorted = false
}

// Begin starts a category, until the first End at this time or later. Without
// an End it goes on for ever.
func (a *Account) Begin(c int, at sim.Time) {
	a.categories[c].begins = append(a.categories[c].begins, at)
}

// End ends what began at this time or before.
func (a *Account) End(c int, at sim.Time) { a.categories[c].ends = append(a.categories[c].ends, at) }

// NoGap is the result of a rule of Chain for time that belongs to no category.
const NoGap = -1

// Chain is Span for a part of something longer, for example of a message on its
// way. The gap between the previous part and this one goes to the category that
// the function gap returns for the categories of the two. If gap is nil, it
// goes to c.
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

// Break ends a chain: a later part begins a new one.
func (a *Account) Break(key uint64) { delete(a.chains, key) }

// settle makes the spans of a category sorted and disjoint.
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

// pair turns marks into spans. It keeps the marks, because a later End may end
// what is still open.
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

// Attribute divides an interval among the categories. It adds to each of times
// the share of its category. times has one element more than there are
// categories: the last one gets the time of no category. Call it after
// everything was recorded: what has no End then goes on for ever. It panics if
// the length of times is wrong: a programmer's mistake.
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

// within returns the spans that overlap the time between from and to.
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

// without removes spans from list. It appends what is left of list to rest, and
// returns the length of the removed time. list and spans are sorted and
// disjoint.
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
