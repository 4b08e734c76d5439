package smmu

import "github.com/spinsim/spinsim/sim"

// slot is a transaction that waits for the second TLB or for a walk, or is
// stalled.
type slot struct {
	r       *Request
	va      uint64
	from    sim.Time // when it was stalled
	next    int32
	gen     uint32 // of the bank
	bank    uint8
	channel uint8
	why     why  // it is stalled
	again   bool // it has been looked up before
}

// why is the reason why a slot is held, and how it continues.
type why uint8

const (
	behind   why = iota // a fault of its bank blocks it
	faulted             // its own fault
	retrying            // RESUME
	ending              // RESUME with 1
)

// channel is the way in for reads, for writes or for both.
type channel struct {
	waiting queue // for their turn
	free    int32 // a list of slots, none: -1
	used    int   // slots
	stuck   int   // its slots that wait for a walk, if that blocks it
}

// open reports whether the channel takes a transaction.
func (c *channel) open() bool { return c.free >= 0 && c.stuck == 0 }

// list is a list of slots in order. The zero value is not empty: see none.
type list struct{ first, last int32 }

var none = list{-1, -1}

// slots are the slots of all channels. A slot is in one list at most.
type slots struct {
	all      []slot
	channels [2]channel
	both     bool // there is one channel
	most     int  // used in a channel at a time
}

func (s *slots) init(channels, each int) {
	*s = slots{all: make([]slot, channels*each), both: channels == 1}
	for c := range channels {
		s.channels[c].free = -1
		for i := (c+1)*each - 1; i >= c*each; i-- {
			s.all[i].channel = uint8(c)
			s.all[i].next, s.channels[c].free = s.channels[c].free, int32(i)
		}
	}
}

func (s *slots) channel(write bool) *channel {
	if write && !s.both {
		return &s.channels[1]
	}
	return &s.channels[0]
}

// take takes a slot for the piece at r.at.
func (s *slots) take(c *channel, r *Request) int32 {
	i := c.free
	t := &s.all[i]
	c.free = t.next
	c.used++
	s.most = max(s.most, c.used)
	t.r, t.va, t.bank, t.gen = r, r.at, r.bank, r.gen
	r.open++
	return i
}

// release gives a slot back to its channel.
func (s *slots) release(i int32) {
	t := &s.all[i]
	c := &s.channels[t.channel]
	t.r, t.next, c.free = nil, c.free, i
	c.used--
}

func (s *slots) append(l *list, i int32) {
	s.all[i].next = -1
	if l.first < 0 {
		l.first = i
	} else {
		s.all[l.last].next = i
	}
	l.last = i
}

func (s *slots) pop(l *list) int32 {
	i := l.first
	l.first = s.all[i].next
	return i
}

// resume continues the slots of a list that are stalled because of their
// faults. They are tried again. Only the first one, whose fault is in the
// registers, may be terminated: the argument first is retrying or ending.
func (s *slots) resume(l list, first why) {
	for i := l.first; i >= 0; i = s.all[i].next {
		if t := &s.all[i]; t.why == faulted {
			t.why = first
			first = retrying
		}
	}
}
