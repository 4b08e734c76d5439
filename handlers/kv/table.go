//go:build !tinygo

package kv

import (
	"encoding/binary"
	"math"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// table is the hash table of a server, for its host. The time for a walk and
// for its reads is charged before anything changes, so that every change is one
// moment.
type table struct {
	p     *runtime.Proc
	area  runtime.View
	pool  pool
	load  int
	parts []part
	// shared means that clients read buckets and items by themselves. Then
	// there is a directory for them, items have checksums, and old buckets of a
	// stripe remain marked for ever.
	shared bool
}

// part is the host's knowledge of a stripe that it owns.
type part struct {
	table, items, version, growAt uint64
	// its entry in the directory, and how often the stripe has changed
	number, changes uint64
	era             uint64
	waiting         []job // requests that came before the stripe
}

// newTable makes empty stripes, in unused memory.
func newTable(p *runtime.Proc, o *Options) (*table, error) {
	t := &table{p: p, area: p.Alloc(o.Memory), load: o.Load, parts: make([]part, o.Stripes), shared: o.Mode == OneSided}
	t.area.Lock()
	t.pool.next, t.pool.end = directory, uint64(o.Memory) // a block at place 0 would have no link
	if t.shared {
		t.pool.next += (uint64(o.Stripes)*directoryEntry + 63) &^ 63
	}
	class := ClassOf(uint64(o.Buckets) * 8)
	for i := range t.parts {
		place, ok := t.pool.take(class)
		if !ok {
			return nil, tooSmall(o)
		}
		log := uint32(0)
		for 1<<log < o.Buckets {
			log++
		}
		t.parts[i] = part{table: Link(place, log, 0), number: uint64(i), growAt: uint64(o.Load) << log}
		t.publish(&t.parts[i])
	}
	return t, nil
}

// charge lets the core wait for a number of places of memory, one after the
// other, and then read and write bytes.
func (t *table) charge(places int, read, written int64) {
	t.p.Compute(sim.Time(places) * t.p.Reads(used.MemoryLatency).Host.MemoryLatency)
	t.p.Stream(read, written)
}

func (t *table) word(at uint64) uint64 {
	return binary.LittleEndian.Uint64(t.area.Slice(int(at), int(at)+8).Read())
}

func (t *table) setWord(at, w uint64) {
	binary.LittleEndian.PutUint64(t.area.Slice(int(at), int(at)+8).Write(), w)
}

// bytes returns memory of the server. It is valid until the program next waits.
func (t *table) bytes(at, n uint64) []byte { return t.area.Slice(int(at), int(at+n)).Read() }

// item is an item that find has found.
type item struct {
	first       uint64 // the bucket's first link
	at          uint64 // place of its link
	link        uint64 // 0: there is none
	next        uint64
	version     uint64
	key, value  uint64 // lengths
	places      int    // that the walk has read
	read        int64  // bytes of keys compared
	bucketPlace uint64
}

// find walks a bucket. It takes no time: the caller charges it. It panics if
// handlers have linked an item to itself.
func (t *table) find(p *part, key []byte, hash uint64) (i item) {
	i.at = Bucket(p.table, hash)
	i.bucketPlace = i.at
	i.first = t.word(i.at)
	i.link = i.first
	for i.places = 1; i.link != 0; i.places++ {
		if i.places > t.area.Len()/RequestSize {
			panic("kv: the list of a bucket has no end") //lint:panic a mistake in handlers
		}
		place := Place(i.link)
		head := t.bytes(place, RequestSize)
		i.next, i.version = binary.LittleEndian.Uint64(head), binary.LittleEndian.Uint64(head[16:])
		i.key, i.value = uint64(binary.LittleEndian.Uint32(head[24:])), uint64(binary.LittleEndian.Uint32(head[28:]))
		if Alike(i.link, hash) && i.key == uint64(len(key)) {
			i.read += int64(i.key)
			if Same(t.bytes(place+RequestSize, i.key), key) {
				i.places++
				return i
			}
		}
		i.at, i.link = place, i.next
	}
	i.version = 0
	return i
}

// link makes a block with key and value the item of a key: in place of the
// found one, or as the first of its bucket.
func (t *table) link(p *part, i *item, block, hash uint64, key, value int) {
	next, at := i.first, i.bucketPlace
	if i.link != 0 {
		next, at = i.next, i.at
	} else {
		p.items++
	}
	p.version++
	place := Place(block)
	head := t.area.Slice(int(place), int(place)+RequestSize).Write()
	clear(head)
	binary.LittleEndian.PutUint64(head, next)
	binary.LittleEndian.PutUint64(head[8:], hash)
	binary.LittleEndian.PutUint64(head[16:], p.version)
	binary.LittleEndian.PutUint32(head[24:], uint32(key))
	binary.LittleEndian.PutUint32(head[28:], uint32(value))
	if t.shared {
		t.setWord(place+32, checksum(p.version, t.bytes(place+RequestSize, uint64(key+value))))
	}
	t.setWord(at, Link(place, Class(block), hash))
	t.publish(p)
}

// unlink removes a found item from its bucket.
func (t *table) unlink(p *part, i *item) {
	t.setWord(i.at, i.next)
	p.items--
	t.publish(p)
}

// grow gives a stripe as many buckets as its items need.
func (t *table) grow(p *part) {
	was := Class(p.table)
	if place, log := t.larger(p); log > was {
		t.charge(int(1<<was+2*p.items), 8<<was, 8<<log)
		t.rehash(p, place, log)
	}
}

// larger allocates as many buckets as the items of a stripe need. If there is
// no memory, the stripe no longer grows.
func (t *table) larger(p *part) (place uint64, log uint32) {
	was := Class(p.table)
	log = was
	for p.items > uint64(t.load)<<log {
		log++
	}
	for ok := false; log > was && !ok; {
		if place, ok = t.pool.take(ClassOf(8 << log)); !ok {
			log--
		}
	}
	if log == was {
		p.growAt = math.MaxUint64
	}
	return place, log
}

// rehash moves the items of a stripe into other buckets, in one moment.
func (t *table) rehash(p *part, place uint64, log uint32) {
	was := Class(p.table)
	old, grown := p.table, Link(place, log, 0)
	clear(t.area.Slice(int(place), int(place)+8<<log).Write())
	for b := range uint64(1) << was {
		var next uint64
		for link := t.word(Place(old) + 8*b); link != 0; link = next {
			next = t.word(Place(link))
			to := Bucket(grown, t.word(Place(link)+8))
			t.setWord(Place(link), t.word(to))
			t.setWord(to, link)
		}
	}
	p.table, p.growAt = grown, uint64(t.load)<<log
	if !t.shared {
		t.pool.give(Place(old), ClassOf(8<<was))
		return
	}
	for b := range uint64(1) << was {
		t.setWord(Place(old)+8*b, moved)
	}
	t.publish(p)
}

// The directory of a shared table has for each stripe the place of its buckets,
// and how often it has changed.
const (
	directory      = 64 // its place
	directoryEntry = 16
	moved          = ^uint64(0) // in place of a link: the stripe has new buckets
)

// publish records the state of a stripe in the directory.
func (t *table) publish(p *part) {
	if !t.shared {
		return
	}
	p.changes++
	at := directory + p.number*directoryEntry
	t.setWord(at, p.table)
	t.setWord(at+8, p.changes)
}
