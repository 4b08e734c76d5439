package mpi

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
)

// Wait returns when a request is over, and gives it back.
func (r *Rank) Wait(q *Request) (Status, error) {
	q.mark.Live("mpi: a request")
	for !q.done {
		if err := r.step(); err != nil {
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
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	return r.take(), nil
}

// Test acts on all that has arrived and returns a request that is over, or nil. It does not wait.
func (r *Rank) Test() (*Request, error) {
	for r.ni.EQLen(r.eq) > 0 {
		if err := r.step(); err != nil {
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

// step waits for an event and acts on it.
func (r *Rank) step() error {
	ev, err := r.ni.EQWait(r.eq)
	if err != nil {
		return fmt.Errorf("mpi: rank %d: %w", r.Rank(), err)
	}
	i := uint32(ev.UserPtr)
	switch {
	case ev.Type == portals.EventPTDisabled:
		r.disabled = true
		return r.recover()
	case ev.Type == portals.EventAck && (ev.Fail == portals.NIOK || ev.Fail == portals.NIPTDisabled):
		return r.acknowledged(r.letters[i], ev.Fail != portals.NIOK)
	case ev.Fail != portals.NIOK:
		return r.failed(&ev)
	}
	switch ev.Type {
	case portals.EventPut, portals.EventPutOverflow:
		return r.came(&ev)
	case portals.EventReply:
		r.complete(r.requests[i])
	case portals.EventGet:
		r.complete(r.requests[i])
	case portals.EventSend:
		r.read(r.letters[i])
	case portals.EventAutoUnlink:
		r.linked--
		if err := r.form.unlinked(r.buffers[i]); err != nil {
			return err
		}
		return r.advanced()
	case portals.EventAutoFree:
		if err := r.form.freed(r.buffers[i]); err != nil {
			return err
		}
		return r.advanced()
	default:
		return fmt.Errorf("mpi: rank %d: event %v, which nothing here asks for", r.Rank(), ev.Type)
	}
	return nil
}

// came acts on a message or a control message.
func (r *Rank) came(ev *portals.Event) error {
	if ev.PTIndex == controlPT {
		if err := r.controlled(ev); err != nil || !r.disabled {
			return err
		}
		return r.recover()
	}
	if err := r.form.arrived(ev); err != nil {
		return err
	}
	return r.advanced()
}

// advanced notes that something has happened that may have made room.
func (r *Rank) advanced() error {
	r.progress++
	if !r.disabled {
		return nil
	}
	return r.recover()
}

// errTruncated is wrapped by the error of a message that is longer than its receive.
var errTruncated = errors.New("longer than its receive")

// failed is the error of an event that tells of a failure.
func (r *Rank) failed(ev *portals.Event) error {
	if ev.Type == portals.EventPut && ev.UserPtr&^uint64(^uint32(0)) == ptrRequest {
		q := r.requests[uint32(ev.UserPtr)]
		q.status = statusOf(ev.MatchBits, ev.HdrData)
		if err := r.fits(q); err != nil {
			return err
		}
	}
	return fmt.Errorf("mpi: rank %d: %v failed: %v", r.Rank(), ev.Type, ev.Fail)
}

// fits checks that a message has room in its receive.
func (r *Rank) fits(q *Request) error {
	if s := q.status; s.Bytes > q.length {
		return fmt.Errorf("mpi: rank %d: message of %d B from rank %d with tag %d is %w of %d B", r.Rank(), s.Bytes, s.Source, s.Tag, errTruncated, q.length)
	}
	return nil
}

// copied lets the process copy the beginning of a message from a buffer to its place.
func (r *Rank) copied(q *Request, from uint64, n int) error {
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

// fetch lets the process get what is left of a large message, whose announcement lies at an address. REPLY ends the receive.
func (r *Rank) fetch(q *Request, announced uint64) error {
	v, err := r.p.View(announced, matching.AnnouncementSize)
	if err != nil {
		return err
	}
	b := v.Read()
	first, tag := r.world.first, binary.LittleEndian.Uint64(b[8:])
	if err := r.copied(q, announced+matching.AnnouncementSize, first); err != nil {
		return err
	}
	m, err := r.region(q.addr, q.length)
	if err != nil {
		return err
	}
	r.stats.Large++
	return r.ni.Get(m.md, q.addr-m.addr+uint64(first), uint64(q.status.Bytes-first),
		r.world.places[q.status.Source], exposedPT, tag, uint64(first), ptrRequest|uint64(q.id))
}

// link appends the entry of a buffer: behind all receives with Offload, for every message with Host.
func (r *Rank) link(b *buffer) error {
	b.full = false
	r.linked++
	list, options := portals.PriorityList, portals.EntryOptions(0)
	if r.world.o.Matching == Offload {
		list, options = portals.OverflowList, portals.OptMEEventCommDisable
	}
	_, err := r.ni.MEAppend(messagePT, &portals.ME{
		Start: b.addr, Length: uint64(r.world.o.BufferBytes), UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: ^uint64(0),
		MinFree: uint64(r.world.o.Eager + matching.AnnouncementSize),
		Options: portals.OptMEOpPut | portals.OptMEManageLocal | portals.OptMEEventLinkDisable | options,
	}, list, ptrBuffer|uint64(b.index))
	return err
}

// relink appends the entry of a buffer again.
func (r *Rank) relink(b *buffer) error {
	r.overhead()
	return r.link(b)
}
