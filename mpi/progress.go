package mpi

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/internal/used"
)

// Wait returns when a request is complete, and gives it back.
func (r *Rank) Wait(q *Request) (Status, error) {
	if q == nil {
		return Status{}, fmt.Errorf("mpi: rank %d: no request to wait for", r.rank)
	}
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

// hand gives a completed request back and returns its status.
func (r *Rank) hand(q *Request) Status {
	r.requests.over.cut(q)
	r.Free(q)
	return q.status
}

// Next waits for a completed request and returns it. Requests come in the order
// of completion. The result is nil if no request is active. The caller frees
// it.
func (r *Rank) Next() (*Request, error) {
	for r.requests.over.first == nil && r.requests.active > 0 {
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	return r.requests.over.pop(), nil
}

// Test handles everything that has arrived and returns a completed request, or
// nil. It does not wait, and takes no time if nothing has arrived. A program
// that calls Test in a loop therefore needs Compute between the calls, or calls
// Tested instead.
func (r *Rank) Test() (*Request, error) {
	if err := r.arrived(); err != nil {
		return nil, err
	}
	return r.requests.over.pop(), nil
}

func (r *Rank) step() error {
	if err := r.transport.step(); err != nil {
		return err
	}
	return r.proceed()
}

// arrived handles everything that has happened.
func (r *Rank) arrived() error {
	for r.transport.ready() {
		if err := r.step(); err != nil {
			return err
		}
	}
	return nil
}

// looked charges a look at memory that finds nothing.
func (r *Rank) looked() { r.p.Look(r.p.Reads(used.Look).Host.Poll) }

// finish waits until no message still needs the rank that sent it.
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

// ErrTruncate is wrapped by the error for a message longer than its receive
// (MPI_ERR_TRUNCATE).
var ErrTruncate = errors.New("longer than its receive")

// fits checks that a message to a rank has room in its receive.
func (q *Request) fits(rank int) error {
	if s := q.status; s.Bytes > q.length {
		in := ""
		if q.schedule != nil {
			in = " in " + q.schedule.call.describe(q.comm)
		}
		return fmt.Errorf("mpi: rank %d: message of %d B from rank %d with tag %d is %w of %d B%s", rank, s.Bytes, s.Source, s.Tag, ErrTruncate, q.length, in)
	}
	return nil
}
