package host

// Order is a line of accesses that keep their places: they reach memory in the order in which they were made, although a translation is late or
// fails. A write whose translation is not known yet, or that has failed and is not settled, holds up the writes, reads and atomics made after
// it; their own translations are asked for meanwhile. What needs none waits, too: the record of a message's end stays behind the message. Accesses
// of other Orders, and those of none, go past. The zero value is an empty line. Where there is no Translator nothing ever waits in it.
//
// Streams of an Order are a line of their own: each begins when the one before has ended.
type Order struct {
	first, last             *Access
	firstStream, lastStream *Access // that have not ended
}

// Empty reports whether nothing waits in the line.
func (o *Order) Empty() bool { return o.first == nil && o.firstStream == nil }

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
	ready                 // nothing is in its way but others of its Order; a stream: but others that are older
)

// admit lets a write cross the bus whose translation is known, or makes it wait for those before it.
func (b *Bus) admit(a *Access) {
	a.state = ready
	if a.Order == nil {
		a.state = launched
		b.launch(a)
		return
	}
	b.proceed(a.Order)
}

// proceed launches what nothing holds up any more.
func (b *Bus) proceed(o *Order) {
	for a := o.first; a != nil && a.state == ready; a = o.first {
		o.remove(a)
		a.state = launched
		b.launch(a)
	}
}

// done tells the translator of the end of what it has let pass.
func (b *Bus) done(a *Access, i int) {
	from, to := 0, a.Length
	if a.piece != whole {
		from, to = a.Span(i)
	}
	b.translator.Done(a, from, to-from)
}

// Again makes an access, or a stream from piece i on, that has failed be tried once more: the device asks again. It keeps its place in its Order
// and, by its age, among the streams.
func (b *Bus) Again(a *Access, i int) {
	switch {
	case a.piece != whole:
		a.piece, a.state = i, launched
		b.post(b.request(), kindRequest, 0, 0, a)
	case a.dir == ToMemory:
		b.known(a, b.ask(a, 0, a.Length))
	default:
		b.fetchLater(a)
	}
}

// Drop gives up an access that has failed, or the rest of a stream: what it has held up goes on.
func (b *Bus) Drop(a *Access) {
	switch {
	case a.piece != whole:
		b.streamEnded(a)
		b.turn()
	case a.Order != nil && a.dir == ToMemory:
		a.Order.remove(a)
		b.proceed(a.Order)
	}
}
