package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
)

func (t *overPortals) step() error {
	if n := len(t.r.modules.active); n > 0 {
		set := &t.r.modules
		unit := set.any.unit
		if event, err := t.ni.EQWaitOrOther(t.eq, unit.NI(), unit.Signal(), set.seen+1); err != nil {
			return fmt.Errorf("mpi: rank %d: %w", t.r.rank, err)
		} else if !event {
			return t.r.collect()
		}
	}
	var err error
	ev := &t.event // steps do not nest
	if *ev, err = t.ni.EQWait(t.eq); err != nil {
		return fmt.Errorf("mpi: rank %d: %w", t.r.rank, err)
	}
	i := uint32(ev.UserPtr)
	switch {
	case ev.Type == portals.EventPTDisabled:
		t.disabled = true
		return t.recover()
	case ev.Type == portals.EventAck && (ev.Fail == portals.NIOK || ev.Fail == portals.NIPTDisabled):
		return t.acknowledged(t.letters[i], ev.Fail != portals.NIOK)
	case ev.Type == portals.EventSearch && ev.UserPtr == ptrKept:
		t.form.empty()
		return nil
	case ev.Type == portals.EventSearch:
		t.searched = true
		if t.isThere = ev.Fail == portals.NIOK; t.isThere {
			t.found = statusOf(envelopeOf(ev.MatchBits), ev.HdrData)
		}
		return nil
	case ev.Fail != portals.NIOK:
		return t.failed(ev)
	}
	switch ev.Type {
	case portals.EventPut, portals.EventPutOverflow:
		return t.came(ev)
	case portals.EventReply:
		return t.fetched(t.r.requests[i])
	case portals.EventGet:
		t.r.complete(t.r.requests[i])
	case portals.EventSend:
		t.sent(ev)
	case portals.EventAutoUnlink:
		t.linked--
		if err := t.form.unlinked(t.buffers[i]); err != nil {
			return err
		}
		return t.advanced()
	case portals.EventAutoFree:
		if err := t.form.freed(t.buffers[i]); err != nil {
			return err
		}
		return t.advanced()
	default:
		return fmt.Errorf("mpi: rank %d: event %v, which nothing here asks for", t.r.rank, ev.Type)
	}
	return nil
}

func (t *overPortals) came(ev *portals.Event) error {
	if ev.PTIndex == controlPT {
		if err := t.controlled(ev); err != nil || !t.disabled {
			return err
		}
		return t.recover()
	}
	if ev.PTIndex == unpackPT {
		t.r.stats.UnpackedByNIC++
		t.r.complete(t.r.requests[uint32(ev.UserPtr)])
		return nil
	}
	if err := t.form.arrived(ev); err != nil {
		return err
	}
	return t.advanced()
}

// sent handles the event that the NIC has read the data of a message.
func (t *overPortals) sent(ev *portals.Event) {
	if ev.UserPtr != ptrUnpack { // else the event at the other end completes the receive
		t.read(t.letters[uint32(ev.UserPtr)])
	}
}

// fetched completes a receive whose data the process has got.
func (t *overPortals) fetched(q *Request) error {
	if t.c.o.Matching == Offload {
		return t.received(q)
	}
	t.r.complete(q)
	return nil
}

// advanced counts an event that may have made room.
func (t *overPortals) advanced() error {
	t.progress++
	if !t.disabled {
		return nil
	}
	return t.recover()
}

func (t *overPortals) failed(ev *portals.Event) error {
	if ev.Type == portals.EventPut && ev.UserPtr&^uint64(^uint32(0)) == ptrRequest {
		q := t.r.requests[uint32(ev.UserPtr)]
		q.status = statusOf(envelopeOf(ev.MatchBits), ev.HdrData)
		if err := t.r.fits(q); err != nil {
			return err
		}
	}
	return fmt.Errorf("mpi: rank %d: %v failed: %v", t.r.rank, ev.Type, ev.Fail)
}

// deposited makes the process copy a message from a buffer to its place.
func (t *overPortals) deposited(q *Request, from uint64) error {
	if q.typed == nil {
		return t.copied(q, from, q.status.Bytes)
	}
	if q.typed.there = q.status.Bytes == 0; q.typed.there {
		return nil
	}
	v, err := t.r.p.View(from, q.status.Bytes)
	if err != nil {
		return err
	}
	q.typed.unpack(t.r, v)
	return nil
}

// copied makes the process copy the first n bytes of a message from a buffer to
// its place.
func (t *overPortals) copied(q *Request, from uint64, n int) error {
	if n == 0 {
		return nil
	}
	src, err := t.r.p.View(from, n)
	if err != nil {
		return err
	}
	dst, err := t.r.p.View(q.addr, n)
	if err != nil {
		return err
	}
	t.r.p.Copy(dst, src)
	t.r.stats.Copied++
	t.r.stats.CopiedBytes += int64(n)
	return nil
}

// fetch makes the process get the rest of a large message. The announcement
// lies at address announced. The REPLY event completes the receive.
func (t *overPortals) fetch(q *Request, announced uint64) error {
	v, err := t.r.p.View(announced, matching.AnnouncementSize)
	if err != nil {
		return err
	}
	b := v.Read()
	first, tag := t.c.first, binary.LittleEndian.Uint64(b[8:])
	if err := t.copied(q, announced+matching.AnnouncementSize, first); err != nil {
		return err
	}
	m, err := t.region(q.addr, q.length)
	if err != nil {
		return err
	}
	t.r.stats.Large++
	return t.ni.Get(portals.Get{
		MD: m.md, Offset: q.addr - m.addr + uint64(first), Length: uint64(q.status.Bytes - first),
		Target: t.r.world.places[q.status.Source], PT: exposedPT, MatchBits: tag, RemoteOffset: uint64(first), UserPtr: ptrRequest | uint64(q.id),
	})
}

// link appends the entry of a buffer. With Offload it goes behind all receives;
// with Host it takes every message.
func (t *overPortals) link(b *buffer) error {
	b.full = false
	t.linked++
	list, options := portals.PriorityList, portals.EntryOptions(0)
	if t.c.o.Matching == Offload {
		list, options = portals.OverflowList, portals.OptMEEventCommDisable
	}
	if t.count != portals.CTNone {
		options |= portals.OptMEEventCTComm
	}
	_, err := t.ni.MEAppend(messagePT, &portals.ME{
		CT: t.count, Start: b.addr, Length: uint64(t.c.o.BufferBytes), UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: ^uint64(0),
		MinFree: uint64(t.c.o.Eager + matching.AnnouncementSize),
		Options: portals.OptMEOpPut | portals.OptMEManageLocal | portals.OptMEEventLinkDisable | options,
	}, list, ptrBuffer|uint64(b.index))
	return err
}

func (t *overPortals) relink(b *buffer) error {
	t.overhead()
	return t.link(b)
}
