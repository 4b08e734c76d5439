package mpi

import (
	"errors"
	"fmt"
)

// Wait returns when a request is over, and gives it back.
func (r *Rank) Wait(q *Request) (Status, error) {
	q.mark.Live("mpi: a request")
	r.blocked = q
	for !q.done {
		if err := r.step(); err != nil {
			return Status{}, err
		}
	}
	r.blocked = nil
	return r.hand(q), nil
}

// hand gives a request that is over back.
func (r *Rank) hand(q *Request) Status {
	r.over.cut(q)
	r.Free(q)
	return q.status
}

// Next returns a request that is over, in the order in which they end, as soon
// as there is one; nil if no request is active. The caller frees it.
func (r *Rank) Next() (*Request, error) {
	for r.over.first == nil && r.active > 0 {
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	return r.take(), nil
}

// Test acts on all that has arrived and returns a request that is over, or nil.
// It does not wait, and takes no time if nothing has arrived: a program that
// calls it until something is over needs Compute between the calls, or Tested
// instead.
func (r *Rank) Test() (*Request, error) {
	if err := r.arrived(); err != nil {
		return nil, err
	}
	return r.take(), nil
}

func (r *Rank) take() *Request {
	q := r.over.first
	if q != nil {
		r.over.cut(q)
	}
	return q
}

// step waits for something to happen and acts on it.
func (r *Rank) step() error {
	if err := r.transport.step(); err != nil {
		return err
	}
	return r.proceed()
}

// arrived acts on all that has happened.
func (r *Rank) arrived() error {
	for r.transport.ready() {
		if err := r.step(); err != nil {
			return err
		}
	}
	return nil
}

// looked takes the time of a look at memory in vain.
func (r *Rank) looked() { r.p.Look(r.p.Cluster().Profile().Host.Poll) }

// finish waits until nothing that was sent needs the rank any more.
func (r *Rank) finish() error {
	for _, s := range r.running {
		return fmt.Errorf("mpi: rank %d: the program has ended, but %s has not been waited for", r.rank, s.call.describe(s.comm))
	}
	if err := r.transport.ended(); err != nil {
		return err
	}
	for !r.transport.quiet() || len(r.attached.used) > 0 {
		if err := r.step(); err != nil {
			return err
		}
	}
	r.ended = true
	return r.transport.leave()
}

// ErrTruncate is wrapped by the error of a message that is longer than its
// receive (MPI_ERR_TRUNCATE).
var ErrTruncate = errors.New("longer than its receive")

// fits checks that a message has room in its receive.
func (r *Rank) fits(q *Request) error {
	if s := q.status; s.Bytes > q.length {
		in := ""
		if q.schedule != nil {
			in = " in " + q.schedule.call.describe(q.comm)
		}
		return fmt.Errorf("mpi: rank %d: message of %d B from rank %d with tag %d is %w of %d B%s", r.Rank(), s.Bytes, s.Source, s.Tag, ErrTruncate, q.length, in)
	}
	return nil
}
