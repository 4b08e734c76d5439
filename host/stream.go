package host

// streams are the streams of a bus. Each turn transfers the next piece of the
// oldest stream that can continue, unless the bus is shared (Share). So
// streams come one after the other (LogGP: a NIC sends one message at a time) as
// long as their pages are present. While a stream's translation is late, or its
// device decides about a fault, younger streams of other lines use the bus. It
// continues with the next turn.
type streams struct {
	first, last *Access // streams that want a turn, by age
	unfinished  int32
	passing     bool // a piece is passing the bus; the next turn comes after it
}

// Stream requests the bytes of an access in pieces. Streams come one after the
// other, in the order of their requests. A stream that waits for a translation,
// or after a failure for Again or Drop, lets others overtake, but none of its
// Order. If it waits for the writes Among which it is, it counts as requested
// when they are done.
func (b *Bus) Stream(a *Access) {
	a.way, a.piece = aStream, 0
	if o := a.Among; o != nil && o.first != nil {
		o.push(a)
		a.state = ready
		return
	}
	b.stream(a)
}

// stream starts a stream that does not wait for accesses Among which it is.
func (b *Bus) stream(a *Access) {
	b.begun++
	a.state, a.let, a.age, a.behind = launched, false, b.begun, nil
	b.streams.begin(a)
	b.post(b.request(a), kindRequest, 0, 0, a)
}

// begin adds a stream to the unfinished ones.
func (s *streams) begin(a *Access) {
	s.unfinished++
	if o := a.Among; o != nil && a.Length > 0 {
		a.got, a.other, o.reading = 0, o.reading, a
	}
	if o := a.Order; o != nil {
		if o.firstStream == nil {
			o.firstStream = a
		} else {
			o.lastStream.behind = a
		}
		o.lastStream = a
	}
}

// streamReady handles the request for a stream, or for the rest of a failed one,
// at memory, and a late translation of its next piece.
func (b *Bus) streamReady(a *Access) {
	a.state = ready
	b.streams.wants(a)
	b.turn()
}

// wants adds a stream to those that want a turn, unless it waits for an older
// one of its Order.
func (s *streams) wants(a *Access) {
	if a.Order == nil || a.Order.firstStream == a {
		s.queue(a)
	}
}

// queue adds a stream that is first in its Order to the streams that want a
// turn.
func (s *streams) queue(a *Access) {
	switch {
	case s.first == nil:
		a.next = nil
		s.first, s.last = a, a
	case a.age < s.first.age:
		a.next = s.first
		s.first = a
	case a.age > s.last.age:
		a.next = nil
		s.last.next = a
		s.last = a
	default:
		x := s.first
		for x.next.age < a.age {
			x = x.next
		}
		a.next, x.next = x.next, a
	}
}

// turn gives the bus to the oldest stream that wants it, if no piece is
// passing.
func (b *Bus) turn() {
	s := &b.streams
	for s.first != nil && !s.passing {
		a := s.take(b.more)
		if a.let {
			b.fetch(a)
			continue
		}
		from, to := a.Span(int(a.piece))
		if answer := b.ask(a, from, to-from); answer == OK {
			b.fetch(a)
		} else {
			b.known(a, answer)
		}
	}
}

// take takes out the stream that has the next turn. There must be one.
func (s *streams) take(more *moreBus) *Access {
	if more != nil && more.shares != nil {
		return more.shares.take(s)
	}
	a := s.first
	if s.first = a.next; s.first == nil {
		s.last = nil
	}
	return a
}

// fetch sends the next piece of the stream that has the turn. The next turn
// comes when the piece has passed.
func (b *Bus) fetch(a *Access) {
	i := int(a.piece)
	from, to := a.Span(i)
	n := int64(to - from)
	if b.more != nil && b.more.shares != nil {
		b.more.shares.passes(a, n)
	}
	b.bytes += n
	sent := b.engine.Now()
	done := sent
	if !b.bare {
		_, sent = b.reads.Hold(sent, b.rate.Time(n))
		done = sent + b.latency
	}
	b.draw(a, false, sent, to-from)
	b.post(done, KindBus, uint64(a.flight), uint64(i), a)
	a.let = false
	if to < a.Length {
		a.piece++
		a.state = ready
		b.streams.queue(a)
	} else { // the client may use a again before the next turn
		a.state = launched
		b.streams.end(a)
	}
	if s := &b.streams; s.unfinished > 0 {
		s.passing = true
		b.post(sent, kindTurn, 0, 0, nil)
	}
}

// end removes a stream that had its last turn, or was given up, from its line.
// The next stream of the line may have a turn.
func (s *streams) end(a *Access) {
	s.unfinished--
	o := a.Order
	if o == nil {
		return
	}
	o.firstStream = a.behind
	if a.behind == nil {
		o.lastStream = nil
		return
	}
	if a.behind.state == ready {
		s.wants(a.behind)
	}
	a.behind = nil
}
