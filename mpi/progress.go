package mpi

import (
	"errors"
	"fmt"
)

// Wait returns when a request is over, and gives it back.
func (r *Rank) Wait(q *Request) (Status, error) {
	q.mark.Live("mpi: a request")
	for !q.done {
		if err := r.transport.step(); err != nil {
			return Status{}, err
		}
	}
	r.over.cut(q)
	r.Free(q)
	return q.status, nil
}

// Next returns a request that is over, in the order in which they end, as soon as there is one; nil if no request is
// active. The caller frees it.
func (r *Rank) Next() (*Request, error) {
	for r.over.first == nil && r.active > 0 {
		if err := r.transport.step(); err != nil {
			return nil, err
		}
	}
	return r.take(), nil
}

// Test acts on all that has arrived and returns a request that is over, or nil. It does not wait.
func (r *Rank) Test() (*Request, error) {
	for r.transport.ready() {
		if err := r.transport.step(); err != nil {
			return nil, err
		}
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

// finish waits until nothing that was sent needs the rank any more.
func (r *Rank) finish() error {
	for !r.transport.quiet() {
		if err := r.transport.step(); err != nil {
			return err
		}
	}
	return nil
}

// errTruncated is wrapped by the error of a message that is longer than its receive.
var errTruncated = errors.New("longer than its receive")

// fits checks that a message has room in its receive.
func (r *Rank) fits(q *Request) error {
	if s := q.status; s.Bytes > q.length {
		return fmt.Errorf("mpi: rank %d: message of %d B from rank %d with tag %d is %w of %d B", r.Rank(), s.Bytes, s.Source, s.Tag, errTruncated, q.length)
	}
	return nil
}
