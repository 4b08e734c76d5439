package handlerlab

import (
	"slices"
	"unsafe"
)

// clock is a vector clock. For each handler, by number from races.base, it holds
// how much has happened before.
type clock []uint32

// join adds the history of o to c.
func (d *races) join(c *clock, o clock) {
	if more := len(o) - len(*c); more > 0 {
		d.held -= c.bytes()
		*c = append(*c, make(clock, more)...)
		d.held += c.bytes()
	}
	for i, v := range o {
		(*c)[i] = max((*c)[i], v)
	}
}

// bytes is the memory of a clock.
func (c *clock) bytes() int64 { return 4 * int64(cap(*c)) }

// epoch is an access by the instruction at offset, at a time of the clock of
// its handler.
type epoch struct {
	handler, time uint32
	offset        int32
}

// shadow is the history of a byte: the last write, and the unordered reads
// since then.
type shadow struct {
	write epoch
	reads []epoch
}

// word is the history of an aligned word: of all its bytes together, as long as
// no access was to a part.
type word struct {
	all   shadow
	bytes *[4]shadow // nil: all
}

// each returns the histories of a word.
func (w *word) each() []shadow {
	if w.bytes != nil {
		return w.bytes[:]
	}
	return unsafe.Slice(&w.all, 1)
}

// split divides the history of a word into those of its bytes.
func (w *word) split() *[4]shadow {
	if w.bytes == nil {
		w.bytes = &[4]shadow{w.all, w.all, w.all, w.all}
		for i := range w.bytes {
			w.bytes[i].reads = slices.Clone(w.all.reads)
		}
		w.all = shadow{}
	}
	return w.bytes
}

// size is the memory of a word's history.
func (w *word) size() int64 {
	n := int64(unsafe.Sizeof(*w)) + placeBytes
	if w.bytes != nil {
		n += int64(unsafe.Sizeof(*w.bytes))
	}
	for i := range w.each() {
		n += int64(unsafe.Sizeof(epoch{})) * int64(cap(w.each()[i].reads))
	}
	return n
}

const (
	placeBytes  = 24 // a place in a map, about
	clockBytes  = placeBytes + int64(unsafe.Sizeof(clock{}))
	racingBytes = int64(unsafe.Sizeof(racing{}))
)

// mostHistory is how many bytes of clocks and accesses are kept. For example,
// each handler that reads all its memory leaves an access for each word, and
// nothing orders it with those of later messages.
const mostHistory = 128 << 20

// bound forgets the oldest handlers if their history takes too much memory: so
// many that half of it is free. A forgotten handler counts as ordered with all
// others, so this hides races, and invents none.
func (d *races) bound() {
	for most := d.most; d.held > most && len(d.handlers) > 0; most = d.most / 2 {
		d.forget((len(d.handlers) + 1) / 2)
	}
}

// forget forgets a number of handlers.
func (d *races) forget(n int) {
	d.base += uint32(n)
	d.handlers = slices.Clone(d.handlers[n:])
	d.held = racingBytes * int64(len(d.handlers))
	cut := func(c *clock) {
		*c = slices.Clone((*c)[min(n, len(*c)):])
		d.held += c.bytes()
	}
	cut(&d.host)
	cut(&d.self)
	for _, h := range d.running { //lint:maporder each on its own
		cut(&h.seen)
	}
	for _, l := range d.lent { //lint:maporder each on its own
		cut(&l.before)
		cut(&l.now)
	}
	cutAll(d.words, cut)
	cutAll(d.counters, cut)
	cutAll(d.cores, cut)
	cutAll(d.timers, cut)
	for id, of := range d.messages { //lint:maporder each on its own
		for i := range of {
			cut(&of[i])
		}
		if len(of[0])+len(of[1])+len(of[2]) == 0 {
			delete(d.messages, id)
		}
	}
	for at, w := range d.history { //lint:maporder each on its own
		left := false
		for i := range w.each() {
			s := &w.each()[i]
			if s.write.handler < d.base {
				s.write = epoch{}
			}
			s.reads = slices.Clone(slices.DeleteFunc(s.reads, func(r epoch) bool { return r.handler < d.base }))
			left = left || s.write.handler > 0 || len(s.reads) > 0
		}
		if !left {
			delete(d.history, at)
			continue
		}
		d.held += w.size()
	}
}

// cutAll cuts the clocks of a map, and removes those of which nothing is left.
func cutAll[K comparable](of map[K]clock, cut func(*clock)) {
	for k, c := range of { //lint:maporder each on its own
		if cut(&c); len(c) > 0 {
			of[k] = c
		} else {
			delete(of, k)
		}
	}
}

// before reports whether an access is part of the history that a handler has
// seen.
func (d *races) before(e *epoch, seen clock) bool {
	return e.handler == 0 || e.handler < d.base || int(e.handler-d.base) < len(seen) && e.time <= seen[e.handler-d.base]
}

type sided struct {
	epoch
	write bool
}

// conflict returns an earlier access that conflicts with a new one and is not
// ordered with it.
func (d *races) conflict(s *shadow, seen clock, store bool) (with sided, is bool) {
	if !d.before(&s.write, seen) {
		return sided{s.write, true}, true
	}
	if store {
		for i := range s.reads {
			if !d.before(&s.reads[i], seen) {
				return sided{s.reads[i], false}, true
			}
		}
	}
	return sided{}, false
}

func (d *races) note(s *shadow, now epoch, seen clock, store bool) {
	if store {
		s.write, s.reads = now, s.reads[:0]
		return
	}
	s.reads = slices.DeleteFunc(s.reads, func(r epoch) bool { return d.before(&r, seen) })
	s.reads = append(s.reads, now)
}
