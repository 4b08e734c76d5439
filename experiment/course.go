package experiment

import (
	"sync"

	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/runtime"
)

// SharedRuns are simulations that several points look at, each at another time.
// Each is run once. The zero value has none.
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
	Operations []Operation       // that it has noted
	record     *breakdown.Record // nil: nobody has asked
}

// Of returns the run that key names, and has simulate run it if there is none yet.
// The operations of the point become those of the run. A run with a tracer or taps
// is not shared.
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
		if err := simulate(r); err != nil {
			return nil, err // the next one may have more time
		}
		r.done, r.Operations = true, p.done.list
		if p.followed != nil {
			r.record = p.followed.record
			for i := range r.Operations { // several points have it: what it takes to divide them is much
				parts := &breakdown.Times{}
				r.Operations[i].divide(r.record, parts)
				r.Operations[i].parts = parts
			}
			r.record.Forget()
		}
	}
	if p.followed != nil {
		p.followed.record = r.record
	}
	return r, nil
}
