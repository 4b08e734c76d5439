package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
)

// Data is what a call sends or receives: the buffer, count and datatype of MPI's
// calls. With a Type it is Count elements in Memory, without one all bytes of
// Memory. In a collective operation the zero Data stands for data that already
// lies where the result goes (MPI_IN_PLACE), and for arguments that have no
// meaning at a rank.
type Data struct {
	Memory runtime.View // from Rank.Alloc; it holds all elements
	At     int          // displacement 0 of the first element, in bytes from the start of Memory
	Count  int
	Type   *datatype.Type
}

// none reports whether there is no data: MPI_IN_PLACE.
func (m Data) none() bool { return m.Type == nil && m.Memory.Proc() == nil }

// plain returns an error if data without a type has fields that need one.
func (m Data) plain() error {
	if m.Count != 0 || m.At != 0 {
		return fmt.Errorf("%d elements at %d without a Type", m.Count, m.At)
	}
	return nil
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
func (m Data) lay() (*typed, error) {
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

// checked checks the arguments of a message that is sent later.
func (c *Comm) checked(what string, m Data, peer, least int, tag uint32, receives bool) error {
	if m.Type != nil {
		_, err := c.elements(what, m, peer, least, tag, receives)
		return err
	}
	if err := c.message(what, m.Memory.Len(), peer, least, tag, receives); err != nil || peer == ProcNull {
		return err
	}
	return c.r.own(m.Memory)
}

func (c *Comm) elements(what string, m Data, peer, least int, tag uint32, receives bool) (*typed, error) {
	wrong := func(err error) (*typed, error) { return nil, fmt.Errorf("mpi: rank %d: %s: %w", c.r.rank, what, err) }
	t, err := m.lay()
	if err != nil {
		return wrong(err)
	}
	if err := c.message(what, t.size, peer, least, tag, receives); err != nil {
		return nil, err
	}
	if receives {
		if err := c.r.disjoint.check(m.Type, m.Count); err != nil {
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

// disjoint are elements that do not share a byte.
type disjoint struct{ known map[times]bool }

// check returns an error if elements share a byte, which a receive must not
// allow (MPI 4.1 §5.1.11).
func (s *disjoint) check(d *datatype.Type, count int) error {
	k := times{d, count}
	if s.known[k] {
		return nil
	}
	overlap, err := d.Overlaps(count)
	if err != nil {
		return err
	}
	if overlap {
		return fmt.Errorf("%d times %s have a byte of memory twice, which a receive must not", count, d)
	}
	if s.known == nil {
		s.known = map[times]bool{}
	}
	s.known[k] = true
	return nil
}

// pack makes the core pack the elements. It pays for all cache lines that hold
// a byte of them, and for the packed bytes. Each run is touched separately,
// because pages between runs may be absent.
func (t *typed) pack(r *Rank) {
	g := runtime.NewGather(r.p, t.packed.Slice(0, t.size))
	lines := t.walk(r, t.size, func(at, packed, n int) {
		to, from := t.packed.Slice(packed, packed+n).WriteFrom(t.memory.Slice(at, at+n))
		copy(to, from)
		g.Piece(t.memory.Slice(at, at+n))
	})
	g.Run(lines)
	r.stats.PackedByCore++
}

// unpack makes the core unpack the first bytes of a message from memory.
func (t *typed) unpack(r *Rank, message runtime.View) {
	g := runtime.NewGather(r.p, message)
	t.unpackRuns(r, &g, 0, message.Len(), func(at, packed, n int) {
		to, from := t.memory.Slice(at, at+n).WriteFrom(message.Slice(packed, packed+n))
		copy(to, from)
	})
}

// unpackBytes is unpack for bytes outside simulated memory.
func (t *typed) unpackBytes(r *Rank, message []byte) {
	g := runtime.NewGather(r.p, runtime.View{})
	t.unpackRuns(r, &g, int64(len(message)), len(message), func(at, packed, n int) { copy(t.memory.Slice(at, at+n).Write(), message[packed:]) })
}

// unpackRuns moves the runs of the first n bytes. outside is how many of them
// the loop does not know.
func (t *typed) unpackRuns(r *Rank, g *runtime.Gather, outside int64, n int, move func(at, packed, n int)) {
	if t.there = true; n == 0 {
		return
	}
	lines := t.walk(r, n, func(at, packed, n int) {
		move(at, packed, n)
		g.Piece(t.memory.Slice(at, at+n))
	})
	g.Run(outside + lines)
	r.stats.UnpackedByCore++
}

// walk calls f for the runs of the first n bytes, with their place in memory
// and in the stream. It returns the total bytes of the cache lines that a core
// visits.
func (t *typed) walk(r *Rank, n int, f func(at, packed, n int)) (bytes int64) {
	line := uint64(r.p.Reads(used.Stream).Host.LineBytes)
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
