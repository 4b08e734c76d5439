package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/runtime"
)

// Typed is elements of a datatype in memory: the buffer, count and datatype of
// MPI's calls.
type Typed struct {
	Memory runtime.View // from Rank.Alloc; it holds all elements
	At     int          // displacement 0 of the first element, in bytes from the start of Memory
	Count  int
	Type   *datatype.Type
}

// IsendTyped is Isend for elements of a datatype. The process's core packs them
// before the call returns, so the program may change them then. Elements in one
// piece are not copied: they must not change until the request is complete.
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

// IrecvTyped is Irecv for elements of a datatype. No byte of memory may belong
// to two of them. A message may be shorter, and may end within an element
// (Status.Count). A longer one is an error that ends the run, ErrTruncate. The
// sender may use another type with the same number of bytes. As in MPI, nothing
// checks that it has the same basic types in the same order.
//
// With Offload the NIC unpacks (package handlers/datatype). A message of up to
// Options.Eager bytes is unpacked while it arrives, into the receive's match
// entry. The receiver gets the data of a longer message, and then unpacks it
// with a message to itself. The process's core unpacks in all other cases: with
// Host, when the message came before its receive, and when the type does not
// fit into HPU memory. Stats counts both.
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

// SendrecvTyped sends and receives at the same time, to and from any ranks. No
// byte may belong to both sides.
func (c *Comm) SendrecvTyped(send Typed, target int, sendTag uint32, receive Typed, source int, receiveTag uint32) (Status, error) {
	in, err := c.IrecvTyped(receive, source, receiveTag)
	return c.sendrecv(in, err, func() (*Request, error) { return c.IsendTyped(send, target, sendTag) })
}

// Count returns the number of whole elements in the message, or Undefined if it
// ends within an element (MPI_Get_count).
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

type typed struct {
	kind   *datatype.Type
	count  int
	size   int          // bytes of data
	first  int64        // displacement of the first byte of data
	memory runtime.View // from the first byte of data to the last
	whole  bool         // the data is in one piece, in stream order
	packed runtime.View // at least size bytes from the pool; unset if whole
	there  bool         // receive: the bytes are in their places
}

// lay finds the places of elements in memory. It takes no memory of the
// library. Without data the view is zero.
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
	if t.size == 0 { // there may be no memory without data
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

// farthest is the largest displacement, so that sums of places do not overflow.
const farthest = 1 << 61

// reach returns the first and the last byte of count elements, relative to
// displacement 0 of the first element. The caller has checked with Layout that
// the numbers fit.
func reach(d *datatype.Type, count int) (first, last int64) {
	lb, n := d.TrueExtent()
	_, extent := d.Extent()
	far := int64(count-1) * extent
	return lb + min(0, far), lb + n + max(0, far)
}

// times is a number of elements of a datatype, as a key.
type times struct {
	kind  *datatype.Type
	count int
}

// apart returns an error if elements share a byte, which a receive must not
// allow (MPI 4.1 §5.1.11).
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

// pack makes the core pack the elements. It pays for all cache lines that hold
// a byte of them, and for the packed bytes. Each run is touched separately,
// because pages between runs may be absent.
func (t *typed) pack(r *Rank) {
	lines := t.walk(r, t.size, func(at, packed, n int) {
		to, from := t.packed.Slice(packed, packed+n).WriteFrom(t.memory.Slice(at, at+n))
		copy(to, from)
	})
	r.p.Stream(lines, int64(t.size))
	r.stats.PackedByCore++
}

// unpack makes the core unpack the first bytes of a message from memory.
func (t *typed) unpack(r *Rank, message runtime.View) {
	t.unpackRuns(r, message.Len(), func(at, packed, n int) {
		to, from := t.memory.Slice(at, at+n).WriteFrom(message.Slice(packed, packed+n))
		copy(to, from)
	})
}

// unpackBytes is unpack for bytes outside simulated memory.
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

// walk calls f for the runs of the first n bytes, with their place in memory
// and in the stream. It returns the total bytes of the cache lines that a core
// visits.
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

// settle ends a typed request: it unpacks the message if nobody has, and gives
// the temporary memory back.
func (t *typed) settle(r *Rank, q *Request) {
	if q.receives && !t.there {
		t.unpack(r, t.packed.Slice(0, q.status.Bytes))
	}
	r.temporary.put(t.packed)
}
