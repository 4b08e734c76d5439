package memcached

import (
	"strconv"
)

// verb is a kind of storage command. It decides how an existing item is
// treated.
type verb uint8

const (
	set verb = iota
	add
	replace
	appendTo
	prependTo
	checkAndSet
)

// store executes a storage command and returns its answer (do_store_item).
func (s *Store) store(v verb, key, value []byte, flags, expires uint32, unique uint64) string {
	s.Stats.Sets++
	old := s.live(key, hash(key))
	if v == checkAndSet {
		s.Stats.Cas++
	}
	switch {
	case old == 0 && v == checkAndSet:
		s.Stats.CasMisses++
		return notFound
	case old == 0 && v != set && v != add:
		return notStored
	case old != 0 && v == add:
		s.bump(old)
		return notStored
	case v == checkAndSet && s.item(old).cas != unique:
		s.Stats.CasBad++
		return exists
	case v == checkAndSet:
		s.Stats.CasHits++
	case v == appendTo || v == prependTo:
		it := s.item(old)
		flags, expires = it.flags, it.expires
		s.scratch = s.scratch[:0]
		if v == prependTo {
			s.scratch = append(s.scratch, value...)
		}
		if s.scratch = s.value(s.scratch, old); v == appendTo {
			s.scratch = append(s.scratch, value...)
		}
		value = s.scratch
		if itemBytes(len(key), len(value), flags) > pageBytes {
			return notStored
		}
	}
	return s.exchange(old, key, value, flags, expires)
}

// exchange replaces an item, which may be none.
func (s *Store) exchange(old ref, key, value []byte, flags, expires uint32) string {
	h := hash(key)
	r := s.put(key, value, flags, expires)
	if old != 0 { // put may have evicted it
		if old = s.find(key, h); old != 0 {
			s.unlink(old)
		}
	}
	if r == 0 {
		return outOfMemory
	}
	s.link(r)
	return stored
}

// remove executes delete.
func (s *Store) remove(key []byte) string {
	r := s.live(key, hash(key))
	if r == 0 {
		s.Stats.DeleteMisses++
		return notFound
	}
	s.Stats.Deletes++
	s.unlink(r)
	return deleted
}

// numberDigits is the number of digits of the largest 64-bit number.
const numberDigits = 20

// count executes incr and decr (do_add_delta). An increment wraps around at 64
// bits; a decrement stops at 0. If the new number is shorter, spaces follow it,
// as long as it fits.
func (s *Store) count(b, key []byte, up bool, delta uint64) []byte {
	r := s.live(key, hash(key))
	hits, misses := &s.Stats.IncrHits, &s.Stats.IncrMisses
	if !up {
		hits, misses = &s.Stats.DecrHits, &s.Stats.DecrMisses
	}
	if r == 0 {
		*misses++
		return append(b, notFound...)
	}
	it := s.item(r)
	s.scratch = s.value(s.scratch[:0], r)
	n, ok := leadingNumber(s.scratch)
	if !ok {
		return append(b, notNumber...)
	}
	*hits++
	switch {
	case up:
		n += delta
	case delta > n:
		n = 0
	default:
		n -= delta
	}
	var digits [numberDigits]byte
	text := strconv.AppendUint(digits[:0], n, 10)
	if len(text) > int(it.length) {
		if answer := s.exchange(r, key, text, it.flags, it.expires); answer != stored {
			return append(b, outOfMemoryIncr...)
		}
	} else {
		s.overwrite(r, text)
	}
	b = append(b, text...)
	return append(b, "\r\n"...)
}

// overwrite replaces the value of an item by one that is not longer.
func (s *Store) overwrite(r ref, text []byte) {
	it := s.item(r)
	value := s.scratch[:it.length]
	for i := copy(value, text); i < len(value); i++ {
		value[i] = ' '
	}
	s.values.free(r, it)
	it.plain = false
	s.values.put(r, it, value)
	s.memory.Write(s.addr(r), it.bytes())
	s.cas++
	it.cas = s.cas
	s.bump(r)
}

// leadingNumber reads a number as strtoull does. Spaces may be around it
// (safe_strtoull).
func leadingNumber(b []byte) (n uint64, ok bool) {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	if len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	i := 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == 0 || i < len(b) && !isSpace(b[i]) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:i]), 10, 64)
	return n, err == nil
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// touch sets the expiry time of an item and returns the item; 0: there is none.
func (s *Store) touch(key []byte, expires uint32) ref {
	s.Stats.Touches++
	r := s.get(key)
	if r == 0 {
		return 0
	}
	s.Stats.TouchHits++
	s.item(r).expires = expires
	return r
}

// flush executes flush_all: the present items are gone once the given second has
// come; 0: now.
func (s *Store) flush(delay uint32) {
	s.Stats.FlushAll++
	f := &s.flushed
	f.live, f.cas = s.now-1, 0
	if delay > 0 {
		f.live = delay - 1
	}
	if f.live <= s.now {
		s.cas++
		f.cas = s.cas
	}
}

// monthSeconds is 30 days. A larger expiry time is a Unix time. Here the Unix
// epoch is the beginning of the simulation (REALTIME_MAXDELTA).
const monthSeconds = 60 * 60 * 24 * 30

// expiry converts the time of a command to the second of the end; 0: never
// (realtime).
func (s *Store) expiry(t int32) uint32 {
	switch {
	case t == 0:
		return 0
	case t < 0:
		return 1
	case t > monthSeconds:
		return uint32(t) + started
	}
	return s.now + uint32(t)
}

// Set stores a value before the process begins, to set up a server. It reports
// whether there was room.
func (s *Store) Set(key, value []byte) bool {
	return len(key) <= MaxKey && itemBytes(len(key), len(value), 0) <= pageBytes && s.store(set, key, value, 0, 0, 0) == stored
}
