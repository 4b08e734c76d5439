package mpi

import (
	"fmt"
	"slices"
	"sort"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// extents is memory of a rank that a transport has given out, by address.
type extents struct {
	r    *Rank
	list []extent
}

// extent is memory of one alloc.
type extent struct{ addr, length uint64 }

func (e *extents) alloc(n int) (runtime.View, error) {
	v := e.r.p.Alloc(n)
	return v, e.adopt(v.Addr(), uint64(n))
}

func (e *extents) adopt(addr, n uint64) error {
	e.list = append(e.list, extent{addr, n}) // addresses ascend
	return nil
}

func (e *extents) own(v runtime.View) error {
	addr, n := v.Addr(), uint64(v.Len())
	i := sort.Search(len(e.list), func(i int) bool { return e.list[i].addr > addr }) - 1
	if i >= 0 && addr-e.list[i].addr <= e.list[i].length && n <= e.list[i].length-(addr-e.list[i].addr) {
		return nil
	}
	return fmt.Errorf("mpi: rank %d: %d B at %#x are no memory that Alloc has returned", e.r.Rank(), n, addr)
}

// searched charges a process for the list elements it looked at.
func searched(p *runtime.Proc, elements int) {
	p.Compute(sim.Time(elements) * p.Reads(used.Match).Host.Match)
}

// message is anything with an envelope that receives can match.
type message interface{ envelope() envelope }

// matcher holds the lists of a process that matches: receives in the order of
// posting, and messages without a receive in the order of arrival. The caller
// charges for the elements looked at.
type matcher[M message] struct {
	posted     requestList
	unexpected []M
}

// receiver removes and returns the earliest receive that takes a message; nil:
// none does.
func (l *matcher[M]) receiver(env envelope) (q *Request, looked int) {
	for q := l.posted.first; q != nil; q = q.next {
		looked++
		if q.env.takes(env) {
			l.posted.cut(q)
			return q, looked
		}
	}
	return nil, looked
}

// find returns the index of the earliest message that a receive takes; below 0:
// none.
func (l *matcher[M]) find(env envelope) (i, looked int) {
	i = slices.IndexFunc(l.unexpected, func(m M) bool { return env.takes(m.envelope()) })
	if i < 0 {
		return i, len(l.unexpected)
	}
	return i, i + 1
}

func (l *matcher[M]) cut(i int) M {
	m := l.unexpected[i]
	l.unexpected = slices.Delete(l.unexpected, i, i+1)
	return m
}
