package goal

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/poison"
)

// event is an entry of the event queue. Its key holds, from the highest bit:
// the unique number that orders events of one time (32 bits), the kind (2
// bits), and the operation or wait queue (30 bits).
type event struct {
	time int64
	key  uint64
}

const (
	evOp   = 0 << 30 // an operation whose dependencies are met
	evMsg  = 1 << 30 // the message of a send at its target
	evWake = 2 << 30 // the first operation or message of a wait queue

	idMask = 1<<30 - 1
)

func (e event) before(f event) bool {
	return e.time < f.time || e.time == f.time && e.key < f.key
}

const (
	levels      = 8
	levelSlots  = 256
	chunkEvents = 63
	blockChunks = 16
)

// queue orders events by time and key.
//
// It is a wheel of levels with 256 slots. The level of an event is the highest
// byte in which its time differs from now, and its slot is the value of that
// byte. So a slot of level 0 holds events of one time, and an event sinks at
// most once per level. Events mostly come in the order of their keys, and slots
// keep the order of arrival. A slot is sorted only if an older key came late,
// and only when its time has come.
//
// A heap takes events that belong before those already popped: events before
// now (an operation on a processor that lags behind its dependencies), and old
// keys at the time now.
type queue struct {
	now   int64
	read  int32 // next event in the first chunk of now's slot
	late  []event
	slots [levels][levelSlots]slot
	used  [levels][levelSlots / 64]uint64 // one bit per slot that is not empty
	free  *chunk
	sort  []event
}

type slot struct {
	head, tail *chunk
	min, max   int64
	last       uint64
	unsorted   bool
}

type chunk struct {
	next *chunk
	n    int32
	ev   [chunkEvents]event
}

func (q *queue) push(e event) {
	x := uint64(e.time ^ q.now)
	level := 0
	if x >= levelSlots {
		if e.time < q.now {
			q.pushLate(e)
			return
		}
		level = (bits.Len64(x) - 1) >> 3
	} else if e.time <= q.now {
		s := &q.slots[0][uint8(e.time)]
		if x != 0 || s.head != nil && e.key < s.last {
			q.pushLate(e)
			return
		}
	}
	q.append(level, uint8(e.time>>(8*level)), e)
}

func (q *queue) append(level int, at uint8, e event) {
	s := &q.slots[level][at]
	c := s.tail
	if c == nil || c.n == chunkEvents {
		c = q.extend(s)
		q.used[level][at>>6] |= 1 << (at & 63)
		if s.head == c {
			s.min, s.max, s.last, s.unsorted = e.time, e.time, 0, false
		}
	}
	c.ev[c.n] = e
	c.n++
	s.min = min(s.min, e.time)
	s.max = max(s.max, e.time)
	s.unsorted = s.unsorted || e.key < s.last
	s.last = e.key
}

func (q *queue) extend(s *slot) *chunk {
	if q.free == nil {
		block := memory.Make[chunk](blockChunks)
		for i := range block[1:] {
			block[i].next = &block[i+1]
		}
		q.free = &block[0]
	}
	c := q.free
	q.free = c.next
	c.next, c.n = nil, 0
	if s.tail == nil {
		s.head = c
	} else {
		s.tail.next = c
	}
	s.tail = c
	return c
}

// give takes back a chunk whose events were popped or have sunk.
func (q *queue) give(c *chunk) {
	if poison.On {
		for i := range c.ev {
			c.ev[i] = event{time: math.MinInt64, key: math.MaxUint64}
		}
	}
	c.next, q.free = q.free, c
}

func (q *queue) pop() (event, bool) {
	for {
		at := uint8(q.now)
		s := &q.slots[0][at]
		if c := s.head; c != nil {
			e := c.ev[q.read]
			if poison.On && e.time == math.MinInt64 {
				panic("goal: an event of a chunk that was given back") //lint:panic a bug
			}
			if len(q.late) > 0 && q.late[0].before(e) {
				return q.popLate(), true
			}
			if q.read++; q.read == c.n {
				q.read = 0
				s.head = c.next
				q.give(c)
				if s.head == nil {
					s.tail = nil
					q.used[0][at>>6] &^= 1 << (at & 63)
				}
			}
			return e, true
		}
		if len(q.late) > 0 {
			return q.popLate(), true
		}
		if !q.advance() {
			return event{}, false
		}
	}
}

// advance moves now to the time of the next event in the wheel, and fills the
// level 0 slot of that time.
func (q *queue) advance() bool {
	for level := range q.used {
		for w, set := range q.used[level] {
			if set == 0 {
				continue
			}
			at := uint8(w<<6 + bits.TrailingZeros64(set))
			s := &q.slots[level][at]
			q.now = s.min
			if level > 0 {
				q.used[level][w] &= set - 1
				q.sink(s)
			}
			if s = &q.slots[0][uint8(q.now)]; s.unsorted {
				q.sortSlot(s)
			}
			return true
		}
	}
	return false
}

// sink moves the events of a slot to lower levels.
func (q *queue) sink(s *slot) {
	if s.min == s.max {
		at := uint8(s.min)
		q.slots[0][at] = *s
		q.used[0][at>>6] |= 1 << (at & 63)
		s.head, s.tail = nil, nil
		return
	}
	for c := s.head; c != nil; {
		for _, e := range c.ev[:c.n] {
			x := uint64(e.time^q.now) | 1
			level := (bits.Len64(x) - 1) >> 3
			q.append(level, uint8(e.time>>(8*level)), e)
		}
		next := c.next
		q.give(c)
		c = next
	}
	s.head, s.tail = nil, nil
}

// sortSlot sorts the events of a slot of level 0, all of one time.
func (q *queue) sortSlot(s *slot) {
	q.sort = q.sort[:0]
	for c := s.head; c != nil; c = c.next {
		q.sort = append(q.sort, c.ev[:c.n]...)
	}
	slices.SortFunc(q.sort, func(a, b event) int { return cmp.Compare(a.key, b.key) })
	rest := q.sort
	for c := s.head; c != nil; c = c.next {
		rest = rest[copy(c.ev[:c.n], rest):]
	}
	s.last, s.unsorted = q.sort[len(q.sort)-1].key, false
}

// pushLate and popLate keep a binary heap.
func (q *queue) pushLate(e event) {
	h := append(q.late, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	q.late = h
}

func (q *queue) popLate() event {
	h := q.late
	first, e := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(e) {
			break
		}
		h[i] = h[down]
		i = down
	}
	if len(h) > 0 {
		h[i] = e
	}
	q.late = h
	return first
}

// reset empties the queue and goes back to time 0. It keeps the memory.
func (q *queue) reset() {
	q.late = q.late[:0]
	for level := range q.used {
		for w, set := range q.used[level] {
			for ; set != 0; set &= set - 1 {
				s := &q.slots[level][w<<6+bits.TrailingZeros64(set)]
				s.tail.next, q.free = q.free, s.head
				s.head, s.tail = nil, nil
			}
			q.used[level][w] = 0
		}
	}
	q.now, q.read = 0, 0
}
