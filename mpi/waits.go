package mpi

// Tested acts on all that has arrived and, if the request is over, gives it
// back (MPI_Test). If not it has taken at least one look at memory (host.poll),
// so that a program may call it until the request is over.
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

// Of a list of requests the calls below take those that are not nil, and set to
// nil those that they give back. Statuses may be nil if nobody wants them.

// WaitAll returns when all requests are over.
func (r *Rank) WaitAll(qs []*Request, statuses []Status) error {
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

// TestAll gives all requests back if all are over, else none.
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

// WaitAny returns the index of a request that is over as soon as there is one,
// the lowest, or Undefined if all are nil.
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

// TestAny returns the index of the first request that is over, or Undefined.
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

// WaitSome waits until at least one request is over, and appends the indices of
// all that are to done, ascending.
func (r *Rank) WaitSome(qs []*Request, done []int, statuses []Status) ([]int, error) {
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

// TestSome appends the indices of all requests that are over to done, ascending.
func (r *Rank) TestSome(qs []*Request, done []int, statuses []Status) ([]int, error) {
	if err := r.arrived(); err != nil {
		return done, err
	}
	if i, active := ended(qs); i < 0 && active {
		r.looked()
	}
	return r.some(qs, done, statuses), nil
}

// some gives back all requests that are over.
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

// ended returns the index of the first request that is over, or Undefined, and
// whether there is any request.
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
