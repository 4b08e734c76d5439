package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

func (t *overPortals) step() error {
	if others, err := t.others(); others || err != nil {
		return err
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
		return t.fetched(t.r.requests.all[i])
	case portals.EventGet:
		t.r.complete(t.r.requests.all[i])
	case portals.EventSend:
		if ev.UserPtr != ptrUnpack { // else the event at the other end completes the receive
			t.read(t.letters[i])
		}
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

// others waits for an event, or until a module or an operation besides messages
// goes on, and reports whether that was first.
func (t *overPortals) others() (bool, error) {
	var list [2]runtime.Counter
	others := list[:0]
	set, also := &t.r.modules, &t.r.also
	modules := len(set.active) > 0
	if modules {
		unit := set.any.unit
		others = append(others, runtime.Counter{NI: unit.NI(), CT: unit.Signal(), Test: set.seen + 1})
	}
	if also.ni != nil {
		others = append(others, runtime.Counter{NI: also.ni, CT: also.ct, Test: 1})
	}
	if len(others) == 0 {
		return false, nil
	}
	which, err := t.ni.EQWaitOrOther(t.eq, others...)
	switch {
	case err != nil:
		return false, fmt.Errorf("mpi: rank %d: %w", t.r.rank, err)
	case which == 0 && modules:
		return true, t.r.collect()
	}
	return which >= 0, nil
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
		t.r.complete(t.r.requests.all[uint32(ev.UserPtr)])
		return nil
	}
	if err := t.form.arrived(ev); err != nil {
		return err
	}
	return t.advanced()
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
		q := t.r.requests.all[uint32(ev.UserPtr)]
		q.status = statusOf(envelopeOf(ev.MatchBits), ev.HdrData)
		if err := q.fits(t.r.rank); err != nil {
			return err
		}
	}
	return fmt.Errorf("mpi: rank %d: %v failed: %v", t.r.rank, ev.Type, ev.Fail)
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
	if err := q.copied(t.r, announced+matching.AnnouncementSize, first); err != nil {
		return err
	}
	m, err := t.memory.region(q.addr, q.length)
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
	overhead(t.r.p)
	return t.link(b)
}
