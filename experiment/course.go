package experiment

import (
	"sync"

	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
)

// SharedRuns are simulations of which several points look at different times.
// Each simulation runs once. The zero value is empty.
type SharedRuns[T any] struct {
	mu   sync.Mutex
	runs map[string]*SharedRun[T]
}

// SharedRun is one of SharedRuns.
type SharedRun[T any] struct {
	mu         sync.Mutex
	done       bool
	Result     T
	Stats      runtime.Stats
	Operations []Operation       // noted by the run
	record     *breakdown.Record // nil: nobody has asked for it
	used       used.Set          // what happened in the run
}

// Of returns the run with a key. The first call has simulate run it. The
// operations of the point become the operations of the run. A run with a tracer
// or taps is not shared.
func (l *SharedRuns[T]) Of(p *Point, key string, simulate func(*SharedRun[T]) error) (*SharedRun[T], error) {
	if p.followed != nil {
		key += " followed"
	}
	if p.watched() {
		r := &SharedRun[T]{}
		err := simulate(r)
		r.Operations = p.done.list
		return r, err
	}
	l.mu.Lock()
	if l.runs == nil {
		l.runs = map[string]*SharedRun[T]{}
	}
	r := l.runs[key]
	if r == nil {
		r = &SharedRun[T]{}
		l.runs[key] = r
	}
	l.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		before := *p.had
		*p.had = used.Set{}
		err := simulate(r)
		r.used = *p.had
		if *p.had = before; err != nil {
			return nil, err // the next caller may have more time
		}
		r.done, r.Operations = true, p.done.list
		if p.followed != nil {
			r.record = p.followed.record
			for i := range r.Operations { // divide once for all points: it takes long
				parts := &breakdown.Times{}
				r.Operations[i].divide(r.record, parts)
				r.Operations[i].parts = parts
			}
			r.record.Forget()
		}
	}
	p.had.Join(r.used)
	if p.followed != nil {
		p.followed.record = r.record
	}
	return r, nil
}
