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

// others is the events of a slot without the first, in chunks. All chunks are
// full except the last, which has fill events.
type others struct {
	head, tail *chunk
	fill       int
	min        Time // of all the slot's events
}

// rank is an event's place among the events of its time.
type rank struct {
	who uint64 // destination, source
	seq uint64
	ev  *Event
}

// queue is the first field of an Engine. An event that is alone in its slot, as
// most are, is then in one cache line.
type queue struct {
	one     [slotCount]Event // the first of each slot
	more    [slotCount]others
	last    Time
	pending int
	due     int                    // events of time last in batch and late
	summary uint32                 // bit i: used[i] is not zero
	used    [slotCount / 64]uint64 // slots that have an event
	many    [slotCount / 64]uint64 // slots that have more than one
	free    *chunk
	mask    uint64 // see Engine.Interleave

	// The events of time last while there are several. batch is sorted and read
	// from head. Events posted meanwhile for that time go to late, a heap.
	batch []rank
	spare []rank // room to sort the batch
	head  int
	first Event  // the batch points to it
	spent *chunk // the batch points into these, which are given back after its last event
	late  []Event
}

// place returns the slot for an event at time at, which is not before q.last.
func (q *queue) place(at Time) uint {
	x := uint64(at ^ q.last)
	level := uint(bits.Len64(x|1)-1) / digitBits
	return level<<digitBits | uint(at>>(level*digitBits))&(digits-1)
}

// push returns the place for an event at time at, which is not before q.last.
// The caller fills in all fields. Engine.Post has its own copy of this code.
func (q *queue) push(at Time) *Event {
	i := q.place(at) % slotCount
	word, bit := i/64, uint64(1)<<(i%64)
	if q.used[word]&bit != 0 {
		return q.join(i, at)
	}
	q.pending++
	q.used[word] |= bit
	q.summary |= 1 << word
	return &q.one[i]
}

// join is push into slot i, which has events.
func (q *queue) join(i uint, at Time) *Event {
	q.pending++
	s := &q.more[i%slotCount]
	if word, bit := i/64%uint(len(q.many)), uint64(1)<<(i%64); q.many[word]&bit == 0 {
		q.many[word] |= bit
		s.min = q.one[i%slotCount].Time
	}
	s.min = min(s.min, at)
	if s.fill == chunkEvents || s.head == nil {
		q.extend(s)
	}
	s.fill++
	return &s.tail.ev[s.fill-1]
}

// extend adds a chunk to s.
func (q *queue) extend(s *others) {
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

// next returns the time of the earliest event.
func (q *queue) next() (Time, bool) {
	switch {
	case q.due > 0:
		return q.last, true
	case q.summary == 0:
		return 0, false
	}
	i := q.lowest()
	if q.many[i/64]>>(i%64)&1 != 0 {
		return q.more[i].min, true
	}
	return q.one[i].Time, true
}

// lowest returns the index of the lowest slot in use; there must be one.
func (q *queue) lowest() uint {
	word := uint(bits.TrailingZeros32(q.summary)) % uint(len(q.used))
	return (word*64 + uint(bits.TrailingZeros64(q.used[word]))) % slotCount
}

// pop removes the first event unless it is later than limit. It returns nil if
// there is none. Until the next pop the event is in buf or stays where it was:
// events pushed meanwhile go to other slots.
func (q *queue) pop(limit Time, buf *Event) *Event {
	if q.spent != nil && q.head == len(q.batch) {
		q.giveSpent()
	}
	for q.due == 0 {
		if q.summary == 0 {
			return nil
		}
		i := q.lowest()
		word, bit := i/64, uint64(1)<<(i%64)
		single := q.many[word]&bit == 0
		e := &q.one[i]
		first := e.Time
		if !single {
			first = q.more[i].min
		}
		if first > limit {
			return nil
		}
		q.last = first
		q.used[word] &^= bit
		if q.used[word] == 0 {
			q.summary &^= 1 << word
		}
		if single {
			q.pending--
			if i < digits { // events of this time may come to this slot again
				*buf = *e
				e.P = nil
				return buf
			}
			return e
		}
		q.many[word] &^= bit
		if i < digits {
			q.load(i)
			break
		}
		q.deal(i)
	}
	if q.last > limit {
		return nil
	}
	return q.popPresent(buf)
}

// unpop puts the event that was popped last back.
func (q *queue) unpop(e *Event) {
	if e.Time == q.last && q.due > 0 {
		q.pushLate(*e)
		return
	}
	ev := *e
	*q.push(ev.Time) = ev
}

// deal pushes the events of a slot again, nearer to last.
func (q *queue) deal(i uint) {
	first, s := &q.one[i%slotCount], &q.more[i%slotCount]
	c, tail, fill := s.head, s.tail, s.fill
	s.head, s.tail = nil, nil
	*q.push(first.Time) = *first
	first.P = nil
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

// load makes the batch from a slot of level 0, whose events are all of time
// last.
func (q *queue) load(i uint) {
	first, s := &q.one[i%slotCount], &q.more[i%slotCount]
	q.spent = s.head
	q.first, first.P = *first, nil
	q.batch, q.head = append(q.batch[:0], q.rankOf(&q.first)), 0
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
	q.due = len(q.batch)
	if !sorted {
		q.batch, q.spare = sortRanks(q.batch, q.spare)
	}
}

// popPresent removes the first event of time last; there must be one.
func (q *queue) popPresent(buf *Event) *Event {
	q.pending--
	q.due--
	if len(q.late) > 0 {
		if q.head == len(q.batch) || compareRanks(q.rankOf(&q.late[0]), q.batch[q.head]) < 0 {
			q.popLate(buf)
			return buf
		}
	}
	q.head++
	return q.batch[q.head-1].ev
}

// giveSpent takes back the chunks of a batch that has been handled.
func (q *queue) giveSpent() {
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
	q.due++
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
