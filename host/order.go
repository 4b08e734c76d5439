package host

// Order is a line of accesses that reach memory in the order in which they were
// made, even if a translation is late or fails. A write holds up later writes,
// reads and atomics while its translation is unknown, or after it has failed
// until Bus.Again or Bus.Drop. Their own translations are requested meanwhile.
// Accesses without a translation wait, too: for example, the record of a
// message's end stays behind the message. Accesses of other Orders or of none
// overtake. The zero value is an empty line.
//
// Streams of an Order are a separate line: each begins when the one before has
// ended.
//
// A stream Among the accesses of an Order has a place between them. It reads
// the effects of all earlier writes and atomics and of no later ones. It waits
// for earlier accesses that wait. A later access that changes bytes of the
// stream waits until they are at the device, and holds up the accesses after
// it. Without a Translator, that is the only wait in an Order.
type Order struct {
	first                   *Access
	reading                 *Access // streams Among these accesses that are not wholly at the device
	last                    *Access // from first on
	firstStream, lastStream *Access // streams that have not ended
}

// Empty reports whether nothing waits in the line.
func (o *Order) Empty() bool { return o.first == nil && o.firstStream == nil }

// Idle reports whether nothing waits in the line, and a new access would not
// wait.
func (o *Order) Idle() bool { return o.first == nil && o.reading == nil }

// keeps reports whether an access must wait because it would change bytes that
// a stream has not read yet.
func (o *Order) keeps(a *Access) bool {
	if !a.way.changes() {
		return false
	}
	for r := o.reading; r != nil; r = r.other {
		if r.Space == a.Space && r.overlaps(int(r.got)*r.Piece, a) {
			return true
		}
	}
	return false
}

// overlaps reports whether an access, from offset off on, and another one have
// bytes in common.
func (a *Access) overlaps(off int, b *Access) bool {
	for off < a.Length {
		start, n := a.At(off)
		for k := 0; k < b.Length; {
			at, m := b.At(k)
			if at < start+uint64(n) && start < at+uint64(m) {
				return true
			}
			k += m
		}
		off += n
	}
	return false
}

// read records that the pieces of a stream up to i are at the device.
func (o *Order) read(a *Access, i int) {
	a.got = int32(i) + 1
	if _, to := a.Span(i); to == a.Length {
		o.forget(a)
	}
}

// forget removes a stream from the streams that are not read yet.
func (o *Order) forget(a *Access) {
	for at := &o.reading; *at != nil; at = &(*at).other {
		if *at == a {
			*at, a.other = a.other, nil
			return
		}
	}
}

func (o *Order) push(a *Access) {
	a.next = nil
	if o.first == nil {
		o.first = a
	} else {
		o.last.next = a
	}
	o.last = a
}

// remove removes an access from the line, at any place.
func (o *Order) remove(a *Access) {
	var before *Access
	for x := o.first; x != a; x = x.next {
		if x == nil {
			return
		}
		before = x
	}
	if before == nil {
		o.first = a.next
	} else {
		before.next = a.next
	}
	if o.last == a {
		o.last = before
	}
	a.next = nil
}

// state is the progress of an access that involves a Translator.
type state uint8

const (
	launched state = iota // crosses the bus, or is at memory
	waits                 // the translator has not answered
	answered              // the translator has answered later, at this very time
	failed                // the device is notified, and calls Again or Drop
	// waits only for others of its Order; a stream: only for older streams
	ready
)

// admit lets a translated write cross the bus, or makes it wait for earlier
// accesses. A waiting write returns its translation and asks again at its turn.
// Otherwise its page could not be reclaimed, although the earlier accesses may
// need memory that must be freed first.
func (b *Bus) admit(a *Access) {
	a.state = ready
	o := a.Order
	switch {
	case o == nil:
		a.state = launched
		b.launch(a)
	case o.first == a && !o.keeps(a):
		a.let = true
		b.proceed(o)
	default:
		b.done(a, 0, a.flight)
	}
}

// proceed launches the accesses that nothing holds up any more.
func (b *Bus) proceed(o *Order) {
	for a := o.first; a != nil && a.state == ready && !o.keeps(a); a = o.first {
		if a.way == aWrite && !a.let {
			if s := b.ask(a, 0, a.Length); s != OK {
				b.known(a, s)
				return
			}
		}
		o.remove(a)
		a.state, a.let = launched, false
		b.launch(a)
	}
}

// Again retries a failed access, or a stream from piece i on. It keeps its
// place in its Order and its age among the streams.
func (b *Bus) Again(a *Access, i int) {
	switch a.way {
	case aStream:
		a.piece, a.state = int32(i), launched
		b.post(b.request(a), kindRequest, 0, 0, a)
	case aWrite:
		b.known(a, b.ask(a, 0, a.Length))
	default:
		b.fetchLater(a)
	}
}

// Drop gives up a failed access, or the rest of a stream. The accesses that it
// held up continue.
func (b *Bus) Drop(a *Access) {
	switch {
	case a.way == aStream:
		b.streams.end(a)
		b.turn()
		if o := a.Among; o != nil {
			o.forget(a)
			b.proceed(o)
		}
	case a.Order != nil && a.way == aWrite:
		a.Order.remove(a)
		b.proceed(a.Order)
	}
}
