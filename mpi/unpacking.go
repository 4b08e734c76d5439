package mpi

import (
	"math/bits"

	"github.com/spinsim/spinsim/handlers"
	unpacking "github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Receives of elements that are not in one piece, with matching by the NIC.
//
// A receive that takes only eager messages has a match entry on the memory of
// the elements, with the handlers of package handlers/datatype. A longer
// receive has a match entry on temporary memory, to which matching's handlers
// get the data. The reply of a get runs no handlers. So when the data is there,
// the process sends it to itself, to an entry with the handlers for datatypes.

type unpackers struct {
	module *handlers.Module
	known  map[times]*unpacker
	memory int64 // HPU memory in use, bytes
	opened bool  // the portal table entry for messages to oneself exists
}

// unpacker holds the handlers for elements of a datatype. Receives under way at
// the same time share it: its state does not depend on the message.
type unpacker struct {
	installed *handlers.Installed // nil: the process unpacks
}

// leastUnpacker is the least HPU memory for a type, in bytes. Sizes are powers
// of two because each size is compiled once for all nodes.
const leastUnpacker = 1 << 12

// of returns the handlers for a request's elements; nil: the process must
// unpack.
func (u *unpackers) of(proc *runtime.Proc, e *typed) (*handlers.Installed, error) {
	k := times{e.kind, e.count}
	if known := u.known[k]; known != nil {
		return known.installed, nil
	}
	if u.known == nil {
		u.known = map[times]*unpacker{}
	}
	made := &unpacker{}
	u.known[k] = made
	p := proc.Cluster().Profile()
	program, err := unpacking.Compile(e.kind, e.count, unpacking.Options{Packet: int(p.Fabric.MTU), Memory: p.HPU.MaxHPUMemory - u.memory})
	if err != nil {
		return nil, nil //nolint:nilerr // one of the reasons why handlers cannot: the process does it, and Stats counts it
	}
	program.State.Origin -= e.first // the entry begins with the first byte of data
	state := program.Bytes()
	room := int64(1) << bits.Len64(uint64(max(leastUnpacker, len(state))-1))
	if u.memory+room > p.HPU.MaxHPUMemory {
		return nil, nil
	}
	if u.module == nil {
		if u.module, err = unpacking.UnpackSlot.Load(proc.Cluster()); err != nil {
			return nil, err
		}
	}
	made.installed, err = u.module.Install(proc, handlers.Options{Payload: unpacking.Unpack, State: state, Memory: room, Shared: true})
	u.memory += room
	return made.installed, err
}

// unpackEntry changes the entry of a receive to the elements and their
// handlers, if the message will be eager and the NIC has handlers for them.
func (t *overPortals) unpackEntry(q *Request, me *portals.ME) error {
	installed, err := t.unpackers.of(t.r.p, q.typed)
	if err != nil || installed == nil || q.length > t.c.o.Eager {
		return err
	}
	me.Start, me.Length = q.typed.memory.Addr(), uint64(q.typed.memory.Len())
	installed.Attach(me)
	q.typed.there = true
	return nil
}

// toSelf sends data from temporary memory to the rank itself, whose handlers
// unpack it; false: there are no handlers, or nothing to unpack. The event of
// that message completes the receive.
func (t *overPortals) toSelf(q *Request) (bool, error) {
	if q.typed == nil || q.typed.there || q.status.Bytes == 0 {
		return false, nil
	}
	installed, err := t.unpackers.of(t.r.p, q.typed)
	if err != nil || installed == nil {
		return false, err
	}
	if !t.unpackers.opened {
		if _, err := t.ni.Objects().PTAlloc(0, t.eq, unpackPT); err != nil {
			return false, err
		}
		t.unpackers.opened = true
	}
	m, err := t.memory.region(q.addr, q.status.Bytes)
	if err != nil {
		return false, err
	}
	q.typed.there = true
	overhead(t.r.p)
	me := portals.ME{
		Start: q.typed.memory.Addr(), Length: uint64(q.typed.memory.Len()), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: uint64(q.id),
		Options: portals.OptMEOpPut | portals.OptMEUseOnce | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable,
	}
	installed.Attach(&me)
	if _, err := t.ni.MEAppend(unpackPT, &me, portals.PriorityList, ptrRequest|uint64(q.id)); err != nil {
		return false, err
	}
	return true, t.ni.Put(portals.Put{MD: m.md, Offset: q.addr - m.addr, Length: uint64(q.status.Bytes), Target: t.r.world.places[t.r.rank], PT: unpackPT, MatchBits: uint64(q.id), UserPtr: ptrUnpack})
}

// received completes a receive whose bytes are where the entry put them.
func (t *overPortals) received(q *Request) error {
	again, err := t.toSelf(q)
	if err == nil && !again {
		t.r.complete(q)
	}
	return err
}
