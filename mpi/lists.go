package mpi

import (
	"fmt"
	"slices"
	"sort"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// extents is memory that a transport has given out, by address.
type extents []extent

// extent is memory of one alloc.
type extent struct{ addr, length uint64 }

// alloc gives a rank n zeroed bytes.
func (e *extents) alloc(r *Rank, n int) runtime.View {
	v := r.p.Alloc(n)
	*e = append(*e, extent{v.Addr(), uint64(n)}) // addresses ascend
	return v
}

// own checks that all bytes of a view come from one alloc.
func (e extents) own(r *Rank, v runtime.View) error {
	addr, n := v.Addr(), uint64(v.Len())
	i := sort.Search(len(e), func(i int) bool { return e[i].addr > addr }) - 1
	if i >= 0 && addr-e[i].addr <= e[i].length && n <= e[i].length-(addr-e[i].addr) {
		return nil
	}
	return fmt.Errorf("mpi: rank %d: %d B at %#x are no memory that Alloc has returned", r.Rank(), n, addr)
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
