package goal

import (
	"encoding/binary"
	"math"

	"github.com/spinsim/spinsim/internal/memory"
)

// The operations of a schedule are in segments, so that it grows without
// copies. The number of an operation has its segment in the high bits. A
// segment may have free places behind its last operation, except within a rank.
const (
	segmentBits = 14
	segmentOps  = 1 << segmentBits
	maxSegments = (MaxOps + 1) / segmentOps
)

// packed is the stored form of an operation.
type packed struct {
	size uint32 // with wideSize: index in segment.wide
	peer uint32
	succ uint32 // start of the list in segment.succ; it ends where the next one starts
	rank uint16 // index in segment.ranks
	bits uint8  // the kind and the flags below
	deps uint8  // with manyDeps: in segment.many
}

// Parts of packed.bits.
const (
	kindBits  = 3
	wideSize  = 4 // the size has more than 32 bits
	startList = 8 // the operation releases others when it starts
)

// manyDeps in packed.deps stands for this number or more.
const manyDeps = math.MaxUint8

func (p *packed) kind() Kind { return Kind(p.bits & kindBits) }

// segment has up to segmentOps operations. Columns that are 0 for all of them are
// nil.
type segment struct {
	ops   []packed
	ranks []uint32 // with operations here
	tags  []uint32
	high  []uint32 // the upper halves of tags; nil: 0, but ones for AnyTag
	units []unit
	colls []uint32 // numbers of collectives, from 1
	wide  []uint64
	many  map[uint32]uint32 // place in ops to number of releases
	// per operation: a number for each operation that it releases (see edges)
	succ []byte
	// per operation: lines since the previous operation, length of the label,
	// label; nil: neither were kept
	names []byte
	marks []mark // for every markOps operations
	line  uint32 // to add to the lines of marks
	base  uint32 // operations in the segments before
}

// unit is a processor and a network interface.
type unit struct{ cpu, nic uint8 }

// mark is a place in segment.names from where labels and lines can be read.
type mark struct{ at, line uint32 }

const markOps = 32

// store is the part of a schedule that grows with every operation.
type store struct {
	segments []segment
	// the largest indices that operations use, nic not by a computation
	cpu, nic uint8
	// the largest size of a message and of a computation
	bytes, calc uint64
	links       uint64   // dependencies
	coll        uint32   // of the operations that are added
	room        int      // operations for which the first segment has room
	like        *segment // what the first one will be like; nil: not known
}

// at returns an operation by its number in all segments.
func (s *store) at(id uint32) *packed { return &s.segments[id>>segmentBits].ops[id%segmentOps] }

func (s *store) size(id uint32) uint64 {
	c := &s.segments[id>>segmentBits]
	p := &c.ops[id%segmentOps]
	if p.bits&wideSize != 0 {
		return c.wide[p.size]
	}
	return uint64(p.size)
}

func (s *store) tag(id uint32) uint64 {
	c := &s.segments[id>>segmentBits]
	switch {
	case c.tags == nil:
		return 0
	case c.high != nil:
		return uint64(c.high[id%segmentOps])<<32 | uint64(c.tags[id%segmentOps])
	}
	return anyTag(c.tags[id%segmentOps])
}

// anyTag converts a tag of 32 bits, whose largest value is the wildcard.
func anyTag(tag uint32) uint64 {
	if tag == Any {
		return AnyTag
	}
	return uint64(tag)
}

// wideTag reports whether a tag has no form of 32 bits.
func wideTag(tag uint64) bool { return tag >= uint64(Any) && tag != AnyTag }

// unit returns what an operation keeps busy.
func (s *store) unit(id uint32) unit {
	if units := s.segments[id>>segmentBits].units; units != nil {
		return units[id%segmentOps]
	}
	return unit{}
}

func (s *store) rank(id uint32) uint32 {
	c := &s.segments[id>>segmentBits]
	return c.ranks[c.ops[id%segmentOps].rank]
}

func (s *store) deps(id uint32) uint32 {
	c := &s.segments[id>>segmentBits]
	if d := c.ops[id%segmentOps].deps; d < manyDeps {
		return uint32(d)
	}
	return c.many[id%segmentOps]
}

// ids returns a bound of the numbers of operations.
func (s *store) ids() int {
	if len(s.segments) == 0 {
		return 0
	}
	return (len(s.segments)-1)*segmentOps + len(s.segments[len(s.segments)-1].ops)
}

// serial returns how many operations are stored before one.
func (s *store) serial(id uint32) uint32 { return s.segments[id>>segmentBits].base + id%segmentOps }

// add stores an operation without dependencies and returns its number.
func (s *store) add(rank uint32, op *Op) uint32 {
	last := len(s.segments) - 1
	if last < 0 || len(s.segments[last].ops) == segmentOps {
		s.extend()
		last++
	}
	c := &s.segments[last]
	place := len(c.ops)
	if n := len(c.ranks); n == 0 || c.ranks[n-1] != rank {
		c.ranks = append(double(c.ranks, 1), rank)
	}
	p := packed{peer: op.Peer, rank: uint16(len(c.ranks) - 1), succ: uint32(len(c.succ)), bits: uint8(op.Kind) & kindBits}
	if op.Size > math.MaxUint32 {
		p.bits |= wideSize
		p.size = uint32(len(c.wide))
		c.wide = append(c.wide, op.Size)
	} else {
		p.size = uint32(op.Size)
	}
	c.ops = append(double(c.ops, 1), p)
	if c.tags != nil || op.Tag != 0 {
		c.tags = column(c.tags, uint32(op.Tag), c)
	}
	if c.high != nil || wideTag(op.Tag) {
		if c.high == nil {
			c.high = widen(c.tags, cap(c.ops))
		}
		c.high = append(double(c.high[:place], 1), uint32(op.Tag>>32))
	}
	if u := (unit{op.CPU, op.NIC}); c.units != nil || u != (unit{}) {
		c.units = column(c.units, u, c)
	}
	if c.colls != nil || s.coll != 0 {
		c.colls = column(c.colls, s.coll, c)
	}
	s.cpu = max(s.cpu, op.CPU)
	if op.Kind == Calc {
		s.calc = max(s.calc, op.Size)
	} else {
		s.bytes, s.nic = max(s.bytes, op.Size), max(s.nic, op.NIC)
	}
	return uint32(last)<<segmentBits + uint32(place)
}

// widen returns the upper halves of tags that have had none.
func widen(tags []uint32, room int) []uint32 {
	high := memory.Make[uint32](room)[:len(tags)]
	for i, tag := range tags {
		high[i] = uint32(anyTag(tag) >> 32)
	}
	return high
}

// column appends the value of a segment's last operation to a column.
func column[T any](values []T, v T, of *segment) []T {
	if values != nil {
		return append(double(values, 1), v)
	}
	values = memory.Make[T](cap(of.ops))[:len(of.ops)]
	values[len(of.ops)-1] = v
	return values
}

// extend adds a segment. Its columns get about as much room as in the last one.
func (s *store) extend() {
	next, room := segment{}, s.room
	if n := len(s.segments); n > 0 {
		next.base = s.segments[n-1].base + segmentOps
	}
	if like := s.before(len(s.segments)); like != nil {
		room = segmentOps
		next.ranks = memory.Make[uint32](len(like.ranks))[:0]
		if like.marks != nil {
			next.names = memory.Make[byte](len(like.names) + len(like.names)/8)[:0]
			next.marks = make([]mark, 0, segmentOps/markOps)
		}
	}
	next.ops = memory.Make[packed](min(room, segmentOps))[:0]
	s.segments = append(s.segments, next)
}

// before returns the segment before segment n; nil: there is none.
func (s *store) before(n int) *segment {
	if n == 0 {
		return s.like
	}
	return &s.segments[n-1]
}

// setDeps sets the number of releases that an operation waits for.
func (s *store) setDeps(id, n uint32) {
	c := &s.segments[id>>segmentBits]
	p := &c.ops[id%segmentOps]
	p.deps = uint8(min(n, manyDeps))
	if n < manyDeps {
		return
	}
	if c.many == nil {
		c.many = make(map[uint32]uint32)
	}
	c.many[id%segmentOps] = n
}

// link makes operation id release those of done when it is done, and those of
// start when it starts: numbers in its rank, in which it is operation i. Links
// are made in the order of the operations. It reports whether they fit.
func (s *store) link(id, i uint32, done, start []uint32) bool {
	c := &s.segments[id>>segmentBits]
	if uint64(len(c.succ))+uint64(len(done)+len(start))*binary.MaxVarintLen32 > math.MaxUint32 {
		return false
	}
	p := &c.ops[id%segmentOps]
	p.succ = uint32(len(c.succ))
	if len(done)+len(start) == 0 {
		return true
	}
	if c.succ == nil {
		if like := s.before(int(id >> segmentBits)); like != nil {
			c.succ = memory.Make[byte](len(like.succ) + len(like.succ)/8)[:0]
		}
	}
	s.links += uint64(len(done) + len(start))
	for _, x := range done {
		c.succ = appendEdge(c.succ, x-i, 0)
	}
	for _, x := range start {
		c.succ = appendEdge(c.succ, x-i, 1)
		p.bits |= startList
	}
	return true
}

// appendEdge appends a number for an operation at a signed distance.
func appendEdge(list []byte, distance, start uint32) []byte {
	v := (distance<<1^uint32(int32(distance)>>31))<<1 | start
	list = double(list, binary.MaxVarintLen32)
	if v < 0x80 {
		return append(list, byte(v))
	}
	return binary.AppendUvarint(list, uint64(v))
}

// edges is the rest of the list of operations that operation from releases:
// first those that it releases when it is done, then those when it starts. Each
// is a varint. Its lowest bit is 1 for the latter. The others are the distance
// from the operation, positive or negative in turn: 0, -1, 1, -2, and so on.
type edges struct {
	list []byte
	from uint32
}

func (s *store) edges(id uint32) edges {
	c := &s.segments[id>>segmentBits]
	i := id % segmentOps
	if int(i)+1 < len(c.ops) {
		return edges{c.succ[c.ops[i].succ:c.ops[i+1].succ], id}
	}
	return edges{c.succ[c.ops[i].succ:], id}
}

// next takes the next operation; the list must not be empty.
func (e *edges) next() (x uint32, start bool) {
	v, n := uint32(e.list[0]), 1
	if v >= 0x80 {
		var long uint64
		long, n = binary.Uvarint(e.list)
		v = uint32(long)
	}
	e.list = e.list[n:]
	z := v >> 1
	return e.from + (z>>1 ^ -(z & 1)), v&1 != 0
}

// name stores label and line of the last operation. before is the line of the
// operation before it.
func (s *store) name(label []byte, line, before uint32) {
	c := &s.segments[len(s.segments)-1]
	if (len(c.ops)-1)%markOps == 0 {
		c.marks = append(double(c.marks, 1), mark{uint32(len(c.names)), before})
	}
	c.names = double(c.names, len(label)+2*binary.MaxVarintLen32)
	c.names = binary.AppendUvarint(c.names, uint64(line-before))
	c.names = binary.AppendUvarint(c.names, uint64(len(label)))
	c.names = append(c.names, label...)
}

// named returns label and line of an operation; nil and 0 if they were not kept.
func (s *store) named(id uint32) (label []byte, line int) {
	c := &s.segments[id>>segmentBits]
	if c.marks == nil {
		return nil, 0
	}
	place := id % segmentOps
	m := c.marks[place/markOps]
	at := c.names[m.at:]
	line = int(c.line) + int(m.line)
	for k := uint32(0); ; k++ {
		lines, n := binary.Uvarint(at)
		size, k2 := binary.Uvarint(at[n:])
		at = at[n+k2:]
		line += int(lines)
		if k == place%markOps {
			return at[:size], line
		}
		at = at[size:]
	}
}

// take moves the segments of another store to the end. It returns the number of
// the first of their operations. lines are added to their lines.
func (s *store) take(from *store, lines uint32) uint32 {
	first := uint32(len(s.segments)) << segmentBits
	base := uint32(0)
	if n := len(s.segments); n > 0 {
		base = s.segments[n-1].base + uint32(len(s.segments[n-1].ops))
	}
	for i := range from.segments {
		from.segments[i].line += lines
		from.segments[i].base += base
	}
	s.segments = append(s.segments, from.segments...)
	s.cpu, s.nic = max(s.cpu, from.cpu), max(s.nic, from.nic)
	s.bytes, s.calc = max(s.bytes, from.bytes), max(s.calc, from.calc)
	s.links += from.links
	return first
}
