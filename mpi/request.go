package mpi

import "github.com/spinsim/spinsim/internal/poison"

// Status says what a receive has received, or a send has sent.
type Status struct {
	Source   int // in the communicator of the request
	Tag      uint32
	Bytes    int
	Sequence uint32 // the number of the message among those of its source to its target, from 0
}

// Request is a send or a receive under way. It belongs to the rank, which uses
// it again after Wait or Free.
type Request struct {
	mark poison.Mark
	// User is the caller's own.
	User int

	id          uint32
	receives    bool
	done        bool
	addr        uint64
	length      int
	peer        int      // send: the target, a rank of the world
	env         envelope // of the message, or of those that a receive takes
	synchronous bool     // a send that is over when its message has a receive
	detached    bool     // nobody waits for it
	status      Status
	comm        *Comm       // receive: whose ranks its status names
	schedule    *schedule   // the collective operation that it is a part of
	collective  *schedule   // the one that it stands for
	persistent  *Persistent // the operation that was started
	reserved    span        // memory of a buffered send
	// elements that are not in one piece; the memory above is that of the
	// packed bytes
	typed      *typed
	prev, next *Request // in one of the lists of the rank
}

// Receives reports whether the request is a receive.
func (q *Request) Receives() bool { return q.receives }

// Status says what was received or sent; it is valid when the request is over,
// for a send from the beginning.
func (q *Request) Status() Status { return q.status }

// requestList is a first-in first-out list from which any request can leave.
type requestList struct{ first, last *Request }

func (l *requestList) push(q *Request) {
	q.prev, q.next = l.last, nil
	if l.last == nil {
		l.first = q
	} else {
		l.last.next = q
	}
	l.last = q
}

func (l *requestList) cut(q *Request) {
	if q.prev == nil {
		l.first = q.next
	} else {
		q.prev.next = q.next
	}
	if q.next == nil {
		l.last = q.prev
	} else {
		q.next.prev = q.prev
	}
	q.prev, q.next = nil, nil
}
