package sim

import (
	"math/bits"

	"github.com/spinsim/spinsim/internal/poison"
)

// The queue is a hierarchical timing wheel in the manner of a radix heap. An
// event's level is the highest base-256 digit in which its time differs from
// last, the time of the event popped last; its slot is that digit. Because
// nothing is ever pushed before last, the lowest slot in use of the lowest level
// in use holds the earliest events, and all events of one time are in one slot.
// Popping from a slot of several times sets last to the slot's minimum and deals
// the slot's events to lower levels: at most once per level for each event.
const (
	digitBits   = 8
	digits      = 1 << digitBits
	levels      = 64 / digitBits
	slotCount   = levels * digits
	chunkEvents = 63
	slabChunks  = 16
)

// chunk holds events of one slot side by side, so that dealing a slot reads
// memory in order however many events are pending.
type chunk struct {
	next *chunk
	ev   [chunkEvents]Event
}

// slot holds its first event itself, since most have no more, and the others in
// chunks, all full but the last, which has fill events.
type slot struct {
	one        Event
	head, tail *chunk
	fill       int
	min        Time // of the slot's events
}

// rank is an event's place among those of its time.
type rank struct {
	who uint64 // destination, source
	seq uint64
	ev  *Event
}

type queue struct {
	last    Time
	pending int
	summary uint32 // bit i: used[i] is not zero
	used    [slotCount / 64]uint64
	slots   [slotCount]slot
	free    *chunk
	mask    uint64 // see Engine.Interleave

	// The events of time last while there are several: batch is sorted and read
	// from head; what is posted for that time meanwhile is in late, a heap.
	batch []rank
	spare []rank // room to sort the batch
	head  int
	one   Event  // the batch points to it
	spent *chunk // and into these
	late  []Event
}

// push returns the place for an event at time at, which is not before q.last.
// The caller fills in all of it.
func (q *queue) push(at Time) *Event {
	q.pending++
	x := uint64(at ^ q.last)
	level := uint(bits.Len64(x|1)-1) / digitBits
	i := level<<digitBits | uint(at>>(level*digitBits))&(digits-1)
	s := &q.slots[i%slotCount]
	word, bit := i/64%uint(len(q.used)), uint64(1)<<(i%64)
	if q.used[word]&bit == 0 {
		q.used[word] |= bit
		q.summary |= 1 << word
		s.min = at
		return &s.one
	}
	s.min = min(s.min, at)
	if s.fill == chunkEvents || s.head == nil {
		q.extend(s)
	}
	s.fill++
	return &s.tail.ev[s.fill-1]
}

// extend adds a chunk to s.
func (q *queue) extend(s *slot) {
	c := q.take()
	if s.head == nil {
		s.head = c
	} else {
		s.tail.next = c
	}
	s.tail, s.fill = c, 0
}

func (q *queue) take() *chunk {
	c := q.free
	if c == nil {
		slab := new([slabChunks]chunk)
		for i := range slabChunks - 1 {
			slab[i].next = &slab[i+1]
		}
		c = &slab[0]
	}
	q.free, c.next = c.next, nil
	return c
}

// give takes back a chunk whose events were popped or dealt.
func (q *queue) give(c *chunk) {
	if poison.On {
		for i := range c.ev {
			c.ev[i] = Event{Time: -1, Dst: -1, Src: -1, Kind: KindReserved - 1}
		}
	}
	c.next, q.free = q.free, c
}

// present reports whether the events of time last are in the batch.
func (q *queue) present() bool { return q.head < len(q.batch) || len(q.late) > 0 }

// next returns the time of the earliest event.
func (q *queue) next() (Time, bool) {
	switch {
	case q.present():
		return q.last, true
	case q.summary == 0:
		return 0, false
	}
	return q.slots[q.first()].min, true
}

// first returns the index of the lowest slot in use; there must be one.
func (q *queue) first() uint {
	word := uint(bits.TrailingZeros32(q.summary))
	return word*64 + uint(bits.TrailingZeros64(q.used[word%uint(len(q.used))]))
}

// pop moves the first event into out unless it is later than limit.
func (q *queue) pop(limit Time, out *Event) bool {
	for !q.present() {
		if q.summary == 0 {
			return false
		}
		i := q.first()
		s := &q.slots[i%slotCount]
		if s.min > limit {
			return false
		}
		q.last = s.min
		word := i / 64 % uint(len(q.used))
		q.used[word] &^= 1 << (i % 64)
		if q.used[word] == 0 {
			q.summary &^= 1 << word
		}
		if s.head == nil {
			q.pending--
			*out = s.one
			s.one.P = nil
			return true
		}
		if i < digits {
			q.load(s)
			break
		}
		q.deal(s)
	}
	if q.last > limit {
		return false
	}
	q.pending--
	q.popPresent(out)
	return true
}

// deal pushes the events of a slot again, nearer to last.
func (q *queue) deal(s *slot) {
	c, tail, fill := s.head, s.tail, s.fill
	s.head, s.tail = nil, nil
	*q.push(s.one.Time) = s.one
	s.one.P = nil
	q.pending--
	for c != nil {
		n := chunkEvents
		if c == tail {
			n = fill
		}
		for j := range c.ev[:n] {
			e := &c.ev[j]
			*q.push(e.Time) = *e
			e.P = nil
		}
		q.pending -= n
		next := c.next
		q.give(c)
		c = next
	}
}

// load makes the batch of the events of a slot of level 0: all of time last.
func (q *queue) load(s *slot) {
	q.spent = s.head
	q.one, s.one.P = s.one, nil
	q.batch, q.head = append(q.batch[:0], q.rankOf(&q.one)), 0
	sorted := true
	for c := s.head; c != nil; c = c.next {
		n := chunkEvents
		if c == s.tail {
			n = s.fill
		}
		for j := range c.ev[:n] {
			r := q.rankOf(&c.ev[j])
			if compareRanks(r, q.batch[len(q.batch)-1]) < 0 {
				sorted = false
			}
			q.batch = append(q.batch, r)
		}
	}
	s.head, s.tail = nil, nil
	if !sorted {
		q.batch, q.spare = sortRanks(q.batch, q.spare)
	}
}

// popPresent moves the first event of time last into out; there must be one.
func (q *queue) popPresent(out *Event) {
	if len(q.late) > 0 {
		if q.head == len(q.batch) || compareRanks(q.rankOf(&q.late[0]), q.batch[q.head]) < 0 {
			q.popLate(out)
			return
		}
	}
	e := q.batch[q.head].ev
	*out = *e
	e.P = nil
	q.head++
	if q.head < len(q.batch) {
		return
	}
	for c := q.spent; c != nil; {
		next := c.next
		q.give(c)
		c = next
	}
	q.spent = nil
}

// pushLate adds an event of time last while the batch is being popped.
func (q *queue) pushLate(e Event) {
	q.pending++
	q.late = append(q.late, e)
	i := len(q.late) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if compareRanks(q.rankOf(&q.late[parent]), q.rankOf(&q.late[i])) <= 0 {
			return
		}
		q.late[parent], q.late[i] = q.late[i], q.late[parent]
		i = parent
	}
}

func (q *queue) popLate(out *Event) {
	*out = q.late[0]
	n := len(q.late) - 1
	q.late[0] = q.late[n]
	q.late[n].P = nil
	q.late = q.late[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && compareRanks(q.rankOf(&q.late[child+1]), q.rankOf(&q.late[child])) < 0 {
			child++
		}
		if compareRanks(q.rankOf(&q.late[i]), q.rankOf(&q.late[child])) <= 0 {
			return
		}
		q.late[i], q.late[child] = q.late[child], q.late[i]
		i = child
	}
}
