package mpi

import (
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
)

// Status describes a message that was received or sent.
type Status struct {
	Source   int // in the communicator of the request
	Tag      uint32
	Bytes    int
	Sequence uint32 // number of the message from its source to its target, from 0
}

// Request is a send or a receive under way. It belongs to the rank, which uses
// it again after Wait or Free.
type Request struct {
	mark poison.Mark
	// User is for the caller.
	User int

	id          uint32
	receives    bool
	done        bool
	addr        uint64
	length      int
	peer        int      // send: the target as a rank of the world
	env         envelope // of the message, or the pattern of a receive
	synchronous bool     // the send completes when its message has a receive
	detached    bool     // nobody waits for it
	status      Status
	comm        *Comm       // receive: the communicator for the status
	schedule    *schedule   // the collective operation it is part of
	collective  *schedule   // the collective operation it stands for
	persistent  *Persistent // the persistent operation it comes from
	reserved    span        // part of the attached buffer
	// elements that are not in one piece; addr and length are then their packed
	// bytes
	typed      *typed
	entry      portals.Handle // of a receive that the NIC matches
	prev, next *Request       // in one of the lists of the rank
}

// Receives reports whether the request is a receive.
func (q *Request) Receives() bool { return q.receives }

// Status describes the message. It is valid when the request is complete; for a
// send, from the beginning.
func (q *Request) Status() Status { return q.status }

// requests are the requests of a rank.
type requests struct {
	free   requestList
	over   requestList // completed, not yet handed out
	active int         // not done
	all    []*Request  // by their id
}

func (s *requests) add() *Request {
	q := s.free.first
	if q == nil {
		q = &Request{id: uint32(len(s.all))}
		s.all = append(s.all, q)
	} else {
		s.free.cut(q)
		*q = Request{id: q.id}
	}
	s.active++
	return q
}

// nobody returns a completed request, as of a message to or from ProcNull.
func (s *requests) nobody() *Request {
	q := s.add()
	q.done = true
	s.active--
	s.over.push(q)
	return q
}

// requestList is a first-in first-out list. Any request can leave it early.
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

// withdraw takes a request out, if it is there, and returns how many elements
// were looked at.
func (l *requestList) withdraw(wanted *Request) (there bool, looked int) {
	for q := l.first; q != nil; q = q.next {
		if looked++; q == wanted {
			l.cut(q)
			return true, looked
		}
	}
	return false, looked
}

// pop takes the first request; nil: there is none.
func (l *requestList) pop() *Request {
	q := l.first
	if q != nil {
		l.cut(q)
	}
	return q
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

// deposited makes the process copy a message from a buffer to its place.
func (q *Request) deposited(r *Rank, from uint64) error {
	if q.typed == nil {
		return q.copied(r, from, q.status.Bytes)
	}
	if q.typed.there = q.status.Bytes == 0; q.typed.there {
		return nil
	}
	v, err := r.p.View(from, q.status.Bytes)
	if err != nil {
		return err
	}
	q.typed.unpack(r, v)
	return nil
}

// copied makes the process copy the first n bytes of a message from a buffer to
// its place.
func (q *Request) copied(r *Rank, from uint64, n int) error {
	if n == 0 {
		return nil
	}
	src, err := r.p.View(from, n)
	if err != nil {
		return err
	}
	dst, err := r.p.View(q.addr, n)
	if err != nil {
		return err
	}
	r.p.Copy(dst, src)
	r.stats.Copied++
	r.stats.CopiedBytes += int64(n)
	return nil
}
