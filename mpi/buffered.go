package mpi

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/runtime"
)

// attached is the buffer for buffered sends (MPI 4.1 §3.6).
type attached struct {
	memory runtime.View
	used   []span // sorted by offset
}

type span struct{ offset, length int }

// take finds the first free place of at least n bytes.
func (a *attached) take(n int) (span, bool) {
	end, i := 0, 0
	for ; i < len(a.used) && a.used[i].offset-end < n; i++ {
		end = a.used[i].offset + a.used[i].length
	}
	if a.memory.Len()-end < n {
		return span{}, false
	}
	s := span{end, n}
	a.used = slices.Insert(a.used, i, s)
	return s, true
}

func (a *attached) release(s span) {
	i, _ := slices.BinarySearchFunc(a.used, s, func(a, b span) int { return a.offset - b.offset })
	a.used = slices.Delete(a.used, i, i+1)
}

// AttachBuffer makes memory from Alloc the buffer for sends of mode Buffered. A
// message occupies as many bytes as it is long, at least 1 (MPI_BSEND_OVERHEAD
// is 0).
func (r *Rank) AttachBuffer(v runtime.View) error {
	if r.attached.memory.Proc() != nil {
		return fmt.Errorf("mpi: rank %d: a buffer of %d B is attached while one of %d B is", r.rank, v.Len(), r.attached.memory.Len())
	}
	if err := r.own(v); err != nil {
		return err
	}
	r.attached.memory = v
	return nil
}

// DetachBuffer waits until all buffered messages are sent, and returns the
// memory.
func (r *Rank) DetachBuffer() (runtime.View, error) {
	v := r.attached.memory
	if v.Proc() == nil {
		return v, fmt.Errorf("mpi: rank %d: a buffer is detached where none is attached", r.rank)
	}
	r.call = "DetachBuffer"
	for len(r.attached.used) > 0 {
		if err := r.step(); err != nil {
			return v, err
		}
	}
	r.call = ""
	r.attached.memory = runtime.View{}
	return v, nil
}

// buffered copies the bytes into the attached buffer, and starts to send them.
// The message has a request of its own, for which nobody waits.
func (o Send) buffered(c *Comm) (*Request, error) {
	r, v := c.r, o.Data.Memory
	if err := c.message(sendNames[Buffered], v.Len(), o.To, 0, o.Tag, false); err != nil {
		return nil, err
	}
	if o.To == ProcNull {
		return r.requests.nobody(), nil
	}
	if err := r.own(v); err != nil {
		return nil, err
	}
	n := max(v.Len(), 1)
	place, ok := r.attached.take(n)
	if !ok {
		if err := r.arrived(); err != nil { // a send may have freed room
			return nil, err
		}
		if place, ok = r.attached.take(n); !ok {
			return nil, fmt.Errorf("mpi: rank %d: buffered send of %d B to rank %d of %s: no room in the attached buffer of %d B, which holds %d messages",
				r.rank, v.Len(), o.To, c.name, r.attached.memory.Len(), len(r.attached.used))
		}
	}
	part := r.attached.memory.Slice(place.offset, place.offset+v.Len())
	r.p.Copy(part, v)
	if _, err := r.startSend(part, c.Translate(o.To), envelope{source: r.rank, tag: o.Tag, context: c.point()}, mode{buffered: place, detached: true}); err != nil {
		return nil, err
	}
	return r.requests.nobody(), nil
}
