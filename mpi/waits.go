package mpi

import "fmt"

// Tested handles everything that has arrived and, if the request is complete,
// gives it back (MPI_Test). If it is not, at least one look at memory
// (host.poll) has passed, so a program may call Tested in a loop.
func (r *Rank) Tested(q *Request) (Status, bool, error) {
	q.mark.Live("mpi: a request")
	if err := r.arrived(); err != nil {
		return Status{}, false, err
	}
	if !q.done {
		r.looked()
		return Status{}, false, nil
	}
	return r.hand(q), true, nil
}

// The calls below ignore nil requests in a list, and set requests to nil that
// they give back. statuses may be nil.

// WaitAll returns when all requests are complete.
func (r *Rank) WaitAll(qs []*Request, statuses []Status) error {
	if err := places(r.rank, qs, statuses); err != nil {
		return err
	}
	for i, q := range qs {
		if q == nil {
			continue
		}
		s, err := r.Wait(q)
		if err != nil {
			return err
		}
		if qs[i] = nil; statuses != nil {
			statuses[i] = s
		}
	}
	return nil
}

// places checks that there is a place for each status.
func places(rank int, qs []*Request, statuses []Status) error {
	if statuses != nil && len(statuses) < len(qs) {
		return fmt.Errorf("mpi: rank %d: %d statuses for %d requests", rank, len(statuses), len(qs))
	}
	return nil
}

// TestAll gives all requests back if all are complete, else none.
func (r *Rank) TestAll(qs []*Request, statuses []Status) (bool, error) {
	if err := r.arrived(); err != nil {
		return false, err
	}
	for _, q := range qs {
		if q != nil && !q.done {
			r.looked()
			return false, nil
		}
	}
	return true, r.WaitAll(qs, statuses)
}

// WaitAny waits until a request is complete and returns the lowest such index,
// or Undefined if all requests are nil.
func (r *Rank) WaitAny(qs []*Request) (int, Status, error) {
	for {
		i, active := ended(qs)
		if i >= 0 {
			s := r.hand(qs[i])
			qs[i] = nil
			return i, s, nil
		}
		if !active {
			return Undefined, Status{}, nil
		}
		if err := r.step(); err != nil {
			return Undefined, Status{}, err
		}
	}
}

// TestAny returns the index of the first completed request, or Undefined.
// active is false if all are nil.
func (r *Rank) TestAny(qs []*Request) (i int, s Status, active bool, err error) {
	if err := r.arrived(); err != nil {
		return Undefined, Status{}, false, err
	}
	i, active = ended(qs)
	if i < 0 {
		if active {
			r.looked()
		}
		return Undefined, Status{}, active, nil
	}
	s = r.hand(qs[i])
	qs[i] = nil
	return i, s, true, nil
}

// WaitSome waits until at least one request is complete, and appends the
// indices of all completed ones to done, ascending.
func (r *Rank) WaitSome(qs []*Request, done []int, statuses []Status) ([]int, error) {
	if err := places(r.rank, qs, statuses); err != nil {
		return done, err
	}
	for {
		i, active := ended(qs)
		if i >= 0 || !active {
			return r.some(qs, done, statuses), nil
		}
		if err := r.step(); err != nil {
			return done, err
		}
	}
}

// TestSome appends the indices of all completed requests to done, ascending.
func (r *Rank) TestSome(qs []*Request, done []int, statuses []Status) ([]int, error) {
	if err := places(r.rank, qs, statuses); err != nil {
		return done, err
	}
	if err := r.arrived(); err != nil {
		return done, err
	}
	if i, active := ended(qs); i < 0 && active {
		r.looked()
	}
	return r.some(qs, done, statuses), nil
}

func (r *Rank) some(qs []*Request, done []int, statuses []Status) []int {
	for i, q := range qs {
		if q == nil || !q.done {
			continue
		}
		s := r.hand(q)
		if qs[i] = nil; statuses != nil {
			statuses[i] = s
		}
		done = append(done, i)
	}
	return done
}

// ended returns the index of the first completed request, or Undefined. active:
// there is a request that is not nil.
func ended(qs []*Request) (index int, active bool) {
	for i, q := range qs {
		if q == nil {
			continue
		}
		q.mark.Live("mpi: a request")
		if active = true; q.done {
			return i, true
		}
	}
	return Undefined, active
}
