package experiment

import (
	"sync"

	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/runtime"
)

// timelines are runs that several points are moments of: a run is simulated once.
type timelines[T any] struct {
	mu   sync.Mutex
	runs map[string]*timelineRun[T]
}

type timelineRun[T any] struct {
	mu     sync.Mutex
	done   bool
	result T
	stats  runtime.Stats
	list   []operation       // that it has noted
	record *breakdown.Record // nil: nobody has asked
}

// of returns the run of a point, which simulate makes if there is none of its kind, and has the point's operations and what followed them be those of the run. Runs that are watched are made anew.
func (l *timelines[T]) of(p *Point, key string, simulate func(*timelineRun[T]) error) (*timelineRun[T], error) {
	if p.followed != nil {
		key += " followed"
	}
	if p.watched() {
		r := &timelineRun[T]{}
		err := simulate(r)
		r.list = p.done.list
		return r, err
	}
	l.mu.Lock()
	if l.runs == nil {
		l.runs = map[string]*timelineRun[T]{}
	}
	r := l.runs[key]
	if r == nil {
		r = &timelineRun[T]{}
		l.runs[key] = r
	}
	l.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		if err := simulate(r); err != nil {
			return nil, err // the next one may have more time
		}
		r.done, r.list = true, p.done.list
		if p.followed != nil {
			r.record = p.followed.record
			for i := range r.list { // several points have it: what it takes to divide them is much
				parts := &breakdown.Times{}
				r.list[i].divide(r.record, parts)
				r.list[i].parts = parts
			}
			r.record.Forget()
		}
	}
	if p.followed != nil {
		p.followed.record = r.record
	}
	return r, nil
}
