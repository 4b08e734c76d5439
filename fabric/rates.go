package fabric

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/sim"
)

// Rates of ports, for a rate law that keeps to them (Spec.Rates). Every link has
// a [Meter]. It looks at the packets that come and allows all flows one rate, so
// it needs no state per flow:
//
//	rate = (capacity - bytes of flows that are slower elsewhere) / other flows
//
// That is the fair share of Charny, Clark and Jain (ICC 1995), with the flows
// counted as XCP does it (Katabi, Handley and Rohrs, SIGCOMM 2002): a packet
// tells how far it is from the next one of its flow, and stands for its flow for
// that time. Its source gets the lowest rate of its way back. Where all rates
// stay as they are, they are max-min fair.

// Pace is how long a flow takes from the beginning of a full packet to the next,
// as a packet carries it: 11 bits below the exponent, so it is exact to a part in
// 2,048. The larger, the slower. 0 is none.
type Pace uint16

const (
	paceBits = 11
	paceMost = 1<<16 - 1
	longest  = (2<<paceBits - 1) << 30
)

// PaceOf returns the shortest pace that is not shorter than a time, at most 4 s.
// It is at least 1.
func PaceOf(t sim.Time) Pace {
	const one = 1 << paceBits
	v := uint64(max(1, t))
	if v < one {
		return Pace(v)
	}
	shift := bits.Len64(v) - paceBits - 1
	v = (v + 1<<shift - 1) >> shift // perhaps 2 one: the next exponent, and the same time
	if code := uint64(shift)<<paceBits + v; code < paceMost {
		return Pace(code)
	}
	return paceMost
}

// Time returns how long a pace is.
func (p Pace) Time() sim.Time {
	if p < 1<<paceBits {
		return sim.Time(p)
	}
	shift := p>>paceBits - 1
	return sim.Time(p-shift<<paceBits) << shift
}

// Meter computes the rate that a link allows. All its times are times of the
// link.
type Meter struct {
	interval   sim.Time // least time between two changes
	full       sim.Time // a full packet
	begin, end sim.Time // of the present interval
	now, next  load     // what the present interval, and the next, have seen
	asked      sim.Time // flows that have begun in the interval
	backlog    sim.Time // the least that a packet of the interval has found
	last       load     // of the interval before, and of flows that have begun since
	room       sim.Time // what flows may use of that interval
	length     sim.Time // of that interval
	fair       sim.Time // the pace that follows from last
	pace       sim.Time // the present one: half the way from the one before to fair
	allowed    Pace     // at present
	before     [2]Pace  // at the ends of the intervals before: flows may not know better yet
}

// load is what an interval has seen. Each time is a sum: two flows that are there
// for the whole interval count twice its length.
type load struct {
	here  sim.Time // flows that no other link makes slower
	all   sim.Time // all flows
	other sim.Time // what packets take of the others
	rest  sim.Time // what packets take that no rate can slow down
	fast  sim.Time // the shortest pace of the others; 0: there are none
}

// NewMeter returns the meter of a link on which a full packet takes full, and
// that changes its rate once an interval at most.
func NewMeter(interval, full sim.Time) Meter {
	full = max(1, full)
	return Meter{interval: interval, full: full, end: interval, length: interval, room: interval, backlog: longest, fair: full, pace: full, allowed: PaceOf(full)}
}

// Rest counts a packet that no rate slows down.
func (m *Meter) Rest(now, length sim.Time) {
	m.turn(now)
	m.now.rest += length
}

// Pass counts a packet that comes at now, takes length, finds a backlog, and has
// the pace of its flow; 0: its flow has begun and has none. It returns the pace
// that the link allows.
func (m *Meter) Pass(now, length, backlog sim.Time, own Pace) Pace {
	m.turn(now)
	m.backlog = min(m.backlog, backlog)
	if own == 0 {
		// it will soon send more: others that begin now need to know
		m.asked += m.end - m.begin
		m.last.here += m.length
		m.last.all += m.length
		before := m.fair
		m.allow(max(0, m.share()-before))
		return m.allowed
	}
	apart := scaled(own.Time(), length, m.full) // a shorter packet stands for less
	within := min(apart, m.end-now)
	after := min(apart-within, m.end-m.begin) // it counts once in the next interval at most
	m.now.all += within
	m.next.all += after
	if own <= max(m.allowed, m.before[0], m.before[1]) {
		m.now.here += within
		m.next.here += after
		return m.allowed
	}
	if m.now.fast == 0 || own.Time() < m.now.fast {
		m.now.fast = own.Time()
	}
	part := scaled(length, within, max(1, apart))
	m.now.other += part
	m.next.other += length - part
	return m.allowed
}

// turn ends the interval if it is over, and perhaps an empty one after it.
func (m *Meter) turn(now sim.Time) {
	for now >= m.end {
		m.last, m.length = m.now, m.end-m.begin
		m.last.here += m.asked
		m.last.all += m.asked
		m.room = m.length
		if m.backlog < longest { // a packet has come
			m.room -= min(m.backlog, m.length) / 2
		}
		m.before[1], m.before[0] = m.before[0], m.allowed
		m.allow((m.share() - m.pace) / 2)
		m.now, m.next, m.asked, m.backlog = m.next, load{}, 0, longest
		m.begin = m.end
		if now-m.begin >= 2*m.length { // nothing came for long
			*m = NewMeter(m.interval, m.full)
			m.begin = now
		}
		m.end = m.begin + max(m.interval, 2*m.allowed.Time())
	}
}

// allow changes the pace.
func (m *Meter) allow(by sim.Time) {
	m.pace += by
	m.allowed = PaceOf(m.pace)
}

// share computes the pace of the fair share. Where all flows are slower elsewhere, the fastest of
// them may have what is left. The fair share of all flows is the lowest rate
// there can be, however much the slower ones take.
func (m *Meter) share() sim.Time {
	l := &m.last
	flows, left := l.here, m.room-l.rest-l.other
	if l.fast > 0 && flows < m.length {
		left += scaled(m.length-flows, m.full, l.fast)
		flows = m.length
	}
	pace := scaled(l.all, m.full, max(1, m.room-l.rest, m.length/8))
	if left > 0 {
		pace = min(pace, scaled(flows, m.full, left))
	}
	m.fair = max(m.full, pace)
	return m.fair
}

// scaled returns a b / c, at most the longest pace.
func scaled(a, b, c sim.Time) sim.Time {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return longest
	}
	quotient, _ := bits.Div64(high, low, uint64(c))
	return sim.Time(min(quotient, longest))
}

// With a limit, the 7 upper bits of an event's A and the bits of the path in its
// B carry it. An event at a switch has the pace of the flow above the wiring in
// its Kind.
const (
	limitLow   = 64 - pathShift
	limitShift = 64 - (16 - limitLow)
	paceShift  = 8
)

func limitOf(a, b uint64) Pace {
	if b&limitBit == 0 {
		return 0
	}
	return Pace(a>>limitShift<<limitLow | b>>pathShift)
}

func withLimit(a, b uint64, p Pace) (uint64, uint64) {
	return a&(1<<limitShift-1) | uint64(p)>>limitLow<<limitShift, b&(1<<pathShift-1) | uint64(p)<<pathShift | limitBit
}

// meter gives every link that leaves a switch its meter.
func (n *network) meter() {
	if n.spec.Rates == 0 {
		return
	}
	n.meters = make([]Meter, len(n.links))
	for i := range n.meters {
		n.meters[i] = NewMeter(n.spec.Rates, n.takes(i, n.spec.full()))
	}
}

// takes returns how long a packet occupies a link, control bytes included.
func (n *network) takes(link int, bytes int64) sim.Time {
	w := &n.wirings[n.kinds[link]]
	const word = 16
	return n.spec.bits(w.rate, bytes+w.control+(bytes+word-1)/word*w.word)
}

// paceOf is the pace of a packet's flow, where it is in a Kind.
func (n *network) paceOf(w *waiting) sim.Kind {
	if n.meters == nil {
		return 0
	}
	return w.from >> paceShift << paceShift
}

// passes shows a packet that has come to a port to its meter, and lowers the
// packet's limit.
func (n *network) passes(link int, q *outbox, w *waiting) {
	m, length := &n.meters[link], n.takes(link, n.bytesOf(w.b))
	limit := limitOf(w.a, w.b)
	if limit == 0 || classOf(w.b) != Requests {
		m.Rest(w.at, length)
		return
	}
	backlog := n.wirings[n.kinds[link]].rate.Time(q.bytes[Requests] + q.bytes[Answers])
	w.a, w.b = withLimit(w.a, w.b, max(limit, m.Pass(w.at, length, backlog, Pace(w.from>>paceShift))))
}

// checkRates checks Spec.Rates.
func (s *Spec) checkRates() (errs []error) {
	switch {
	case s.Rates < 0 || s.Rates > MaxTime:
		errs = append(errs, fmt.Errorf("rates: want 1 ps to %v, or none, got %v", MaxTime, s.Rates))
	case s.Rates > 0 && !s.AnswersFirst:
		errs = append(errs, errors.New("rates: a port needs to know what waits: want answers_first"))
	case s.Rates > 0 && s.PauseFrom > 0:
		errs = append(errs, errors.New("rates: with pause_from packets have no room for the pace of their flow: want one of them"))
	case s.Rates > 0 && s.spread():
		errs = append(errs, fmt.Errorf("rates: with paths %s a flow takes many ways, and a rate belongs to one: want %s or %s", s.Paths, ByDestination, ByFlow))
	}
	return errs
}
