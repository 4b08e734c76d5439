package host

// streams are the streams of a bus. It has one turn at a time: the next piece
// of the oldest stream that can go on. So they come one after the other (LogGP:
// a NIC sends one message at a time) as long as memory is there; while a
// translation of one is late, or its device decides about a fault, younger ones
// of other lines use the bus, and it goes on with the next turn.
type streams struct {
	first, last *Access // that want a turn, by age
	unfinished  int32
	passing     bool // a piece is passing the bus, and the next turn comes when it has
}

// Stream asks for the bytes of an access in pieces. Streams come one after the
// other, in the order in which they were asked for. One that waits for a
// translation, or that has failed and is not settled, lets others go past, but
// none of its Order. One that waits for the writes Among which it is counts as
// asked for when they have gone.
func (b *Bus) Stream(a *Access) {
	a.way, a.piece = aStream, 0
	if o := a.Among; o != nil && o.first != nil {
		o.push(a)
		a.state = ready
		return
	}
	b.stream(a)
}

// stream is a stream that nothing Among which it is holds up.
func (b *Bus) stream(a *Access) {
	s := &b.streams
	b.begun++
	s.unfinished++
	a.state, a.let, a.age, a.behind = launched, false, b.begun, nil
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
	b.post(b.request(), kindRequest, 0, 0, a)
}

// streamRequested is the request for a stream, or for the rest of one that has failed, at memory.
func (b *Bus) streamRequested(a *Access) {
	a.state = ready
	b.wants(a)
	b.turn()
}

// wants puts a stream among those that want a turn, unless it waits for an older one of its Order.
func (b *Bus) wants(a *Access) {
	if a.Order == nil || a.Order.firstStream == a {
		b.queue(a)
	}
}

// queue puts a stream that has its turn in its Order among those that want one of the bus.
func (b *Bus) queue(a *Access) {
	s := &b.streams
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

// turn gives the bus to the oldest stream that wants it, if no piece is passing.
func (b *Bus) turn() {
	s := &b.streams
	for s.first != nil && !s.passing {
		a := s.first
		if s.first = a.next; s.first == nil {
			s.last = nil
		}
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

// letPass is a late translation of the next piece of a stream: it may have its turn.
func (b *Bus) letPass(a *Access) {
	a.let, a.state = true, ready
	b.wants(a)
	b.turn()
}

// fetch sends the next piece of a stream, whose turn it is; the next turn comes when it has passed.
func (b *Bus) fetch(a *Access) {
	i := int(a.piece)
	from, to := a.Span(i)
	n := int64(to - from)
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
		b.queue(a)
	} else { // a may be its client's again before the next turn
		a.state = launched
		b.streamEnded(a)
	}
	if s := &b.streams; s.unfinished > 0 {
		s.passing = true
		b.post(sent, kindTurn, 0, 0, nil)
	}
}

// streamEnded takes a stream that has had its last turn, or is given up, out of
// its line; the next one of it may have its own.
func (b *Bus) streamEnded(a *Access) {
	b.streams.unfinished--
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
		b.wants(a.behind)
	}
	a.behind = nil
}
