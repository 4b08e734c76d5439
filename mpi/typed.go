package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/runtime"
)

// Typed is elements of a datatype in memory: buffer, count and datatype of MPI's calls.
type Typed struct {
	Memory runtime.View // of Rank.Alloc; it holds all elements
	At     int          // where displacement 0 of the first element is, bytes into Memory
	Count  int
	Type   *datatype.Type
}

// IsendTyped is Isend of elements of a datatype. The process's core packs them
// before the call returns, so that memory may change then; elements that are in
// one piece are not copied.
func (c *Comm) IsendTyped(m Typed, target int, tag uint32) (*Request, error) {
	const what = "typed send"
	t, err := c.elements(what, m, target, 0, tag, false)
	if err != nil {
		return nil, err
	}
	if target == ProcNull {
		return c.nobody(), nil
	}
	if t.whole {
		return c.isend(what, t.memory, target, tag, mode{})
	}
	if t.packed, err = c.r.temporary.get(c.r, t.size); err != nil {
		return nil, err
	}
	t.pack(c.r)
	return c.r.startSend(t.packed.Slice(0, t.size), c.Translate(target), envelope{source: c.r.rank, tag: tag, context: c.point()}, mode{typed: t})
}

// IrecvTyped is Irecv of elements of a datatype, which must not have a byte of
// memory twice. A message may be shorter: it ends within an element then
// (Status.Count). One that is longer is an error of the run, ErrTruncate. The
// sender may have used another type of as many bytes: as in MPI that it has the
// same basic types in the same order is not checked.
//
// With Offload the NIC unpacks (package handlers/datatype): a message of up to
// Options.Eager bytes while it arrives, into the receive's match entry; a
// longer one, whose data the receiver gets, by a message to itself when it is
// there. Else, and if the message came before its receive or the type does not
// fit into HPU memory, the process's core unpacks it when it acts on the
// message. Stats says who did.
func (c *Comm) IrecvTyped(m Typed, source int, tag uint32) (*Request, error) {
	t, err := c.elements("typed receive", m, source, AnySource, tag, true)
	if err != nil {
		return nil, err
	}
	if source == ProcNull || t.whole {
		return c.Irecv(t.memory, source, tag)
	}
	if t.packed, err = c.r.temporary.get(c.r, t.size); err != nil {
		return nil, err
	}
	q := c.r.newRequest()
	q.receives, q.addr, q.length, q.comm, q.typed = true, t.packed.Addr(), t.size, c, t
	q.env = envelope{source: c.Translate(source), tag: tag, context: c.point()}
	if err := c.r.transport.receive(q); err != nil {
		return nil, err
	}
	return q, nil
}

// SendTyped is IsendTyped and Wait.
func (c *Comm) SendTyped(m Typed, target int, tag uint32) error {
	return c.waited(c.IsendTyped(m, target, tag))
}

// RecvTyped is IrecvTyped and Wait.
func (c *Comm) RecvTyped(m Typed, source int, tag uint32) (Status, error) {
	q, err := c.IrecvTyped(m, source, tag)
	if err != nil {
		return Status{}, err
	}
	return c.r.Wait(q)
}

// SendrecvTyped sends and receives at once, to and from any ranks. No byte may be of both.
func (c *Comm) SendrecvTyped(send Typed, target int, sendTag uint32, receive Typed, source int, receiveTag uint32) (Status, error) {
	in, err := c.IrecvTyped(receive, source, receiveTag)
	return c.sendrecv(in, err, func() (*Request, error) { return c.IsendTyped(send, target, sendTag) })
}

// Count is how many whole elements of a datatype have come, or Undefined if the
// message ends within one (MPI_Get_count).
func (s Status) Count(d *datatype.Type) int {
	size := int64(0)
	if d != nil {
		size = d.Size()
	}
	switch {
	case s.Bytes == 0:
		return 0
	case size == 0 || int64(s.Bytes)%size != 0:
		return Undefined
	}
	return int(int64(s.Bytes) / size)
}

// typed is the elements of a request.
type typed struct {
	kind   *datatype.Type
	count  int
	size   int          // bytes of data
	first  int64        // displacement of the first byte of data
	memory runtime.View // from there to the last one
	whole  bool         // the data is in one piece, in the order of the stream
	packed runtime.View // temporary memory of the pool, of size bytes at least; none of what is whole
	there  bool         // of a receive: the bytes are in their places
}

// lay finds where elements are in memory. It takes no memory of the library:
// without data the view is the zero one.
func (r *Rank) lay(m Typed) (*typed, error) {
	layout, err := m.Type.Layout(m.Count)
	if err != nil {
		return nil, err
	}
	t := &typed{kind: m.Type, count: m.Count, whole: true}
	if layout.Root == nil {
		return t, nil
	}
	first, last := reach(m.Type, m.Count)
	from, to := int64(m.At)+first, int64(m.At)+last
	if n := int64(m.Memory.Len()); int64(m.At) < -first || int64(m.At) > n-last {
		if m.At > farthest || m.At < -farthest {
			return nil, fmt.Errorf("%d times %s at %d, outside of a memory of %d", m.Count, m.Type, m.At, n)
		}
		return nil, fmt.Errorf("%d times %s at %d lie in bytes %d to %d of a memory of %d", m.Count, m.Type, m.At, from, to, m.Memory.Len())
	}
	t.size, t.first, t.memory = int(layout.Root.Size), first, m.Memory.Slice(int(from), int(to))
	t.whole = layout.Root.Kind == datatype.Leaf
	return t, nil
}

// elements checks the arguments of a typed call.
func (c *Comm) elements(what string, m Typed, peer, least int, tag uint32, receives bool) (*typed, error) {
	wrong := func(err error) (*typed, error) { return nil, fmt.Errorf("mpi: rank %d: %s: %w", c.r.rank, what, err) }
	t, err := c.r.lay(m)
	if err != nil {
		return wrong(err)
	}
	if err := c.sized(what, t.size, peer, least, tag, receives); err != nil {
		return nil, err
	}
	if receives {
		if err := c.r.apart(m.Type, m.Count); err != nil {
			return wrong(err)
		}
	}
	if t.size == 0 { // without data there may be no memory
		nothing, err := c.r.temporary.get(c.r, 0)
		if err != nil {
			return nil, err
		}
		defer c.r.temporary.put(nothing)
		t.memory = nothing.Slice(0, 0)
	}
	if peer == ProcNull {
		return t, nil
	}
	return t, c.r.own(t.memory)
}

// farthest is how far a displacement may be so that places can be computed with.
const farthest = 1 << 61

// reach is where count elements begin and end, displacement 0 being that of the
// first. Layout has said that the numbers fit.
func reach(d *datatype.Type, count int) (first, last int64) {
	lb, n := d.TrueExtent()
	_, extent := d.Extent()
	far := int64(count-1) * extent
	return lb + min(0, far), lb + n + max(0, far)
}

// times is elements of a datatype, as a program uses them again and again.
type times struct {
	kind  *datatype.Type
	count int
}

// apart is an error if elements have a byte twice, which a receive must not (MPI 4.1 §5.1.11).
func (r *Rank) apart(d *datatype.Type, count int) error {
	k := times{d, count}
	if r.disjoint[k] {
		return nil
	}
	overlap, err := d.Overlaps(count)
	if err != nil {
		return err
	}
	if overlap {
		return fmt.Errorf("%d times %s have a byte of memory twice, which a receive must not", count, d)
	}
	if r.disjoint == nil {
		r.disjoint = map[times]bool{}
	}
	r.disjoint[k] = true
	return nil
}

// pack lets the core pack the elements: it goes to the lines of memory that
// have some of them, and writes as many bytes as they are. Each run is touched
// by itself: pages between runs are nobody's business.
func (t *typed) pack(r *Rank) {
	lines := t.walk(r, t.size, func(at, packed, n int) {
		to, from := t.packed.Slice(packed, packed+n).WriteFrom(t.memory.Slice(at, at+n))
		copy(to, from)
	})
	r.p.Stream(lines, int64(t.size))
	r.stats.PackedByCore++
}

// unpack lets the core put the first bytes of a message, which lie in memory, into their places.
func (t *typed) unpack(r *Rank, message runtime.View) {
	t.unpackRuns(r, message.Len(), func(at, packed, n int) {
		to, from := t.memory.Slice(at, at+n).WriteFrom(message.Slice(packed, packed+n))
		copy(to, from)
	})
}

// unpackBytes is unpack for bytes that are in no memory.
func (t *typed) unpackBytes(r *Rank, message []byte) {
	t.unpackRuns(r, len(message), func(at, packed, n int) { copy(t.memory.Slice(at, at+n).Write(), message[packed:]) })
}

// unpackRuns moves the runs of the first n bytes.
func (t *typed) unpackRuns(r *Rank, n int, move func(at, packed, n int)) {
	if t.there = true; n == 0 {
		return
	}
	r.p.Stream(int64(n), t.walk(r, n, move))
	r.stats.UnpackedByCore++
}

// walk calls f for the runs of the first n bytes, each at a place in memory and
// in the stream, and returns how many bytes the lines have that a core goes to.
func (t *typed) walk(r *Rank, n int, f func(at, packed, n int)) (bytes int64) {
	line := uint64(r.p.Cluster().Profile().Host.LineBytes)
	packed, lines, last := 0, uint64(0), uint64(0)
	base := t.memory.Addr()
	err := t.kind.Runs(t.count, 0, int64(n), func(at, n int64) {
		place := int(at - t.first)
		f(place, packed, int(n))
		packed += int(n)
		from, to := (base+uint64(place))/line, (base+uint64(place)+uint64(n)-1)/line
		if lines += to - from + 1; from == last {
			lines--
		}
		last = to
	})
	if err != nil {
		panic(err) //lint:panic the elements were checked before the request began
	}
	return int64(lines * line)
}

// settle ends a typed request: what has come is unpacked if it is not yet, and
// the temporary memory given back.
func (t *typed) settle(r *Rank, q *Request) {
	if q.receives && !t.there {
		t.unpack(r, t.packed.Slice(0, q.status.Bytes))
	}
	r.temporary.put(t.packed)
}
