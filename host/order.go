package host

// Order is a line of accesses that keep their places: they reach memory in the
// order in which they were made, although a translation is late or fails. A
// write whose translation is not known yet, or that has failed and is not
// settled, holds up the writes, reads and atomics made after it; their own
// translations are asked for meanwhile. What needs none waits, too: the record
// of a message's end stays behind the message. Accesses of other Orders, and
// those of none, go past. The zero value is an empty line.
//
// Streams of an Order are a line of their own: each begins when the one before
// has ended.
//
// A stream Among the accesses of an Order has its place between them: what it
// reads has been changed by all writes and atomics made before it, and by none
// made after. It waits for those that wait. One made after it, of bytes of it
// that are not at the device yet, waits until they are, and holds up what is
// made after it: where there is no Translator nothing else ever waits in an
// Order.
type Order struct {
	first                   *Access
	reading                 *Access // streams Among these accesses of which not all is at the device
	last                    *Access // from first on
	firstStream, lastStream *Access // that have not ended
}

// Empty reports whether nothing waits in the line.
func (o *Order) Empty() bool { return o.first == nil && o.firstStream == nil }

// Idle reports whether nothing waits in the line, and nothing that is made now would.
func (o *Order) Idle() bool { return o.first == nil && o.reading == nil }

// keeps reports whether the line keeps bytes as they are which an access would change.
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

// overlaps reports whether an access, from offset off on, and another one have bytes in common.
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

// read notes that piece i of a stream is at the device, and those before it.
func (o *Order) read(a *Access, i int) {
	a.got = int32(i) + 1
	if _, to := a.Span(i); to == a.Length {
		o.forget(a)
	}
}

// forget takes a stream out of those that are to be read.
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

// remove takes an access out of the line, wherever it stands.
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

// state is how far an access is that has to do with a Translator.
type state uint8

const (
	launched state = iota // it crosses the bus, or is at memory
	waits                 // a translator is asked
	answered              // it has answered later, at this very time
	failed                // the device is told, and settles it
	// nothing is in its way but others of its Order; a stream: but others that
	// are older
	ready
)

// admit lets a write cross the bus whose translation is known, or makes it wait
// for those before it. One that waits gives its translation back, and asks
// again when its turn comes: what it waits for may be memory that somebody has
// to find, and nobody could take its page away.
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

// proceed launches what nothing holds up any more.
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

// Again makes an access, or a stream from piece i on, that has failed be tried
// once more: the device asks again. It keeps its place in its Order and, by its
// age, among the streams.
func (b *Bus) Again(a *Access, i int) {
	switch a.way {
	case aStream:
		a.piece, a.state = int32(i), launched
		b.post(b.request(), kindRequest, 0, 0, a)
	case aWrite:
		b.known(a, b.ask(a, 0, a.Length))
	default:
		b.fetchLater(a)
	}
}

// Drop gives up an access that has failed, or the rest of a stream: what it has held up goes on.
func (b *Bus) Drop(a *Access) {
	switch {
	case a.way == aStream:
		b.streamEnded(a)
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
