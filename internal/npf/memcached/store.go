package memcached

import (
	"bytes"
	"encoding/binary"

	"github.com/spinsim/spinsim/sim"
)

// Store is the items of a server.
type Store struct {
	Stats Stats

	config  Config
	memory  Memory
	classes []class
	slabs   []slab
	base    uint64 // of the slabs within the limit
	table   uint64 // of the buckets
	buckets []ref
	keys    keys
	values  values
	cas     uint64
	flushed struct { // set by flush_all (item_is_flushed)
		live uint32 // once this second has come, items last used up to it are gone; 0: none
		cas  uint64 // likewise, items with lower numbers are gone
	}
	now     uint32
	scratch []byte
}

// Stats counts the work of a store, under the names of memcached's stats.
type Stats struct {
	GetHits, GetMisses, GetExpired        int64
	Sets, Deletes, DeleteMisses           int64
	Items, TotalItems, Bytes, Evictions   int64
	Reclaimed, OutOfMemory, Touches, Cas  int64
	CasHits, CasMisses, CasBad, TouchHits int64
	IncrHits, IncrMisses                  int64
	DecrHits, DecrMisses                  int64
	FlushAll                              int64
}

// item is the server's data about an item. It has no pointers.
type item struct {
	chain, prev, next ref
	key               uint32 // keys
	flags             uint32
	expires           uint32 // second from which it is gone; 0: never
	used              uint32 // second of the last move to the head of its LRU
	length            uint32 // of the value
	cas               uint64
	word              uint64 // of the value, if it repeats one word
	hash              uint32
	nkey              uint8
	plain             bool // the value repeats one word
}

// itemBytes returns the bytes of an item in its chunk (item_make_header). The
// value ends with an end of line.
func itemBytes(nkey, length int, flags uint32) int {
	n := headerBytes + casBytes + nkey + 1 + length + 2
	if flags != 0 {
		n += flagBytes
	}
	return n
}

func (it *item) bytes() int { return itemBytes(int(it.nkey), int(it.length), it.flags) }

// NewStore returns an empty store. It returns an error if the configuration is
// invalid.
func NewStore(m Memory, c Config) (*Store, error) {
	c, err := c.normal()
	if err != nil {
		return nil, err
	}
	s := &Store{config: c, memory: m, classes: classes(&c), buckets: make([]ref, 1<<c.HashPower)}
	s.base = m.Alloc(int(c.Limit))
	s.table = m.Alloc(BucketBytes << c.HashPower)
	s.values.other = map[ref][]byte{}
	s.Tick(0)
	return s, nil
}

// Tick tells the store the time. Like memcached's clock, it counts seconds and
// does not begin at 0 (process_started).
func (s *Store) Tick(now sim.Time) { s.now = uint32(now/sim.Second) + started }

// hash is FNV-1a of 32 bits, mixed. memcached uses MurmurHash3, but only the
// spread of the hash is visible.
func hash(key []byte) uint32 {
	h := uint32(2166136261)
	for _, b := range key {
		h = (h ^ uint32(b)) * 16777619
	}
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// find returns the item of a key, live or not; 0: there is none.
func (s *Store) find(key []byte, h uint32) (r ref) {
	b := h & (1<<s.config.HashPower - 1)
	s.memory.Read(s.table+8*uint64(b), 8)
	for r = s.buckets[b]; r != 0; {
		it := s.item(r)
		s.memory.Read(s.addr(r), headerBytes+casBytes+int(it.nkey)+1)
		if it.hash == h && int(it.nkey) == len(key) && bytes.Equal(s.keys.bytes(it.key, len(key)), key) {
			return r
		}
		r = it.chain
	}
	return 0
}

// gone reports whether an item has ended, although it is not removed yet.
func (s *Store) gone(it *item) bool {
	f := &s.flushed
	return it.expires != 0 && it.expires <= s.now || f.live != 0 && f.live <= s.now && (it.used <= f.live || it.cas < f.cas)
}

// live returns the live item of a key; 0: there is none.
func (s *Store) live(key []byte, h uint32) ref {
	r := s.find(key, h)
	if r != 0 && s.gone(s.item(r)) {
		s.Stats.GetExpired++
		s.unlink(r)
		return 0
	}
	return r
}

// get finds the item of a key for a reader; 0: there is none. The item moves to
// the head of its LRU, unless it moved a short time ago (do_item_update). The
// reader counts itself in the item.
func (s *Store) get(key []byte) ref {
	r := s.live(key, hash(key))
	if r == 0 {
		return 0
	}
	s.memory.Write(s.addr(r), headerBytes) // it->refcount
	s.bump(r)
	return r
}

func (s *Store) bump(r ref) {
	if it := s.item(r); s.config.Bump < 0 || it.used+uint32(s.config.Bump) < s.now {
		it.used = s.now
		s.leave(r)
		s.enter(r)
	}
}

// value appends the value of an item to b.
func (s *Store) value(b []byte, r ref) []byte {
	it := s.item(r)
	n := it.bytes()
	s.memory.Read(s.addr(r)+headerBytes, n-headerBytes)
	return s.values.append(b, r, it)
}

// put makes an item that is not linked; 0: there is no room. The caller checks
// the length of the value.
func (s *Store) put(key, value []byte, flags, expires uint32) ref {
	i, ok := s.classOf(itemBytes(len(key), len(value), flags))
	if !ok {
		return 0
	}
	r := s.chunk(i)
	if r == 0 {
		if r = s.evict(i); r == 0 {
			s.Stats.OutOfMemory++
			return 0
		}
	}
	it := s.item(r)
	*it = item{flags: flags, expires: expires, length: uint32(len(value)), nkey: uint8(len(key)), hash: hash(key), key: s.keys.put(key)}
	s.values.put(r, it, value)
	s.memory.Write(s.addr(r), it.bytes())
	return r
}

// evict takes the chunk of the least recently used item of a class.
func (s *Store) evict(i int) ref {
	c := &s.classes[i]
	if c.tail == 0 {
		return 0
	}
	if s.gone(s.item(c.tail)) {
		s.Stats.Reclaimed++
	} else {
		s.Stats.Evictions++
	}
	s.unlink(c.tail)
	return s.chunk(i)
}

// link makes an item the item of its key, and gives it a number. The key must
// have no item.
func (s *Store) link(r ref) {
	it := s.item(r)
	b := it.hash & (1<<s.config.HashPower - 1)
	s.memory.Write(s.table+8*uint64(b), 8)
	it.chain, s.buckets[b] = s.buckets[b], r
	it.used = s.now
	s.cas++
	it.cas = s.cas
	s.Stats.Items++
	s.Stats.TotalItems++
	s.Stats.Bytes += int64(it.bytes())
	s.enter(r)
}

// unlink removes an item and frees its chunk.
func (s *Store) unlink(r ref) {
	it := s.item(r)
	b := it.hash & (1<<s.config.HashPower - 1)
	s.memory.Read(s.table+8*uint64(b), 8)
	at := &s.buckets[b]
	for *at != r {
		s.memory.Read(s.addr(*at), headerBytes)
		at = &s.item(*at).chain
	}
	*at = it.chain
	s.Stats.Items--
	s.Stats.Bytes -= int64(it.bytes())
	s.leave(r)
	s.free(r)
}

// free frees the chunk of an item that is not linked.
func (s *Store) free(r ref) {
	it := s.item(r)
	s.memory.Write(s.addr(r), headerBytes)
	s.keys.free(it.key, int(it.nkey))
	s.values.free(r, it)
	c := &s.classes[s.slabs[r>>chunkBits-1].class]
	*it = item{chain: c.free}
	c.free = r
}

// enter puts an item at the head of the LRU of its class.
func (s *Store) enter(r ref) {
	c, it := &s.classes[s.slabs[r>>chunkBits-1].class], s.item(r)
	it.prev, it.next = 0, c.head
	s.memory.Write(s.addr(r), headerBytes)
	if c.head != 0 {
		s.memory.Write(s.addr(c.head), headerBytes)
		s.item(c.head).prev = r
	} else {
		c.tail = r
	}
	c.head = r
	c.items++
}

// leave removes an item from its LRU.
func (s *Store) leave(r ref) {
	c, it := &s.classes[s.slabs[r>>chunkBits-1].class], s.item(r)
	if it.prev != 0 {
		s.memory.Write(s.addr(it.prev), headerBytes)
		s.item(it.prev).next = it.next
	} else {
		c.head = it.next
	}
	if it.next != 0 {
		s.memory.Write(s.addr(it.next), headerBytes)
		s.item(it.next).prev = it.prev
	} else {
		c.tail = it.prev
	}
	c.items--
}

// keys are the bytes of keys: pieces of 8 bytes, grouped by their number.
type keys struct {
	blocks [][]byte
	next   uint32 // piece
	freed  [MaxKey/8 + 2][]uint32
}

const (
	keyUnit  = 8
	keyBlock = 1 << 20
)

func units(n int) int { return (n + keyUnit - 1) / keyUnit }

func (k *keys) put(key []byte) (at uint32) {
	n := units(len(key))
	if f := k.freed[n]; len(f) > 0 {
		at = f[len(f)-1]
		k.freed[n] = f[:len(f)-1]
	} else {
		const per = keyBlock / keyUnit
		if len(k.blocks) == 0 || k.next%per+uint32(n) > per || k.next/per == uint32(len(k.blocks)) {
			k.next = uint32(len(k.blocks)) * per
			k.blocks = append(k.blocks, make([]byte, keyBlock))
		}
		at = k.next
		k.next += uint32(n)
	}
	copy(k.bytes(at, len(key)), key)
	return at
}

func (k *keys) bytes(at uint32, n int) []byte {
	off := int(at) * keyUnit
	return k.blocks[off/keyBlock][off%keyBlock:][:n]
}

func (k *keys) free(at uint32, n int) { k.freed[units(n)] = append(k.freed[units(n)], at) }

// values are the bytes of values. If a value repeats the same eight bytes, as a
// load generator's may, only this word is kept. So the value takes no memory of
// the simulating computer.
type values struct{ other map[ref][]byte }

func (v *values) put(r ref, it *item, value []byte) {
	if n := len(value); n >= 8 && bytes.Equal(value[8:], value[:n-8]) {
		it.word, it.plain = binary.LittleEndian.Uint64(value), true
		return
	}
	if len(value) > 0 {
		v.other[r] = bytes.Clone(value)
	}
}

func (v *values) append(b []byte, r ref, it *item) []byte {
	if !it.plain {
		return append(b, v.other[r]...)
	}
	from, n := len(b), int(it.length)
	b = binary.LittleEndian.AppendUint64(b, it.word)
	for len(b)-from < n { // the size doubles: words stay words
		b = append(b, b[from:]...)
	}
	return b[:from+n]
}

func (v *values) free(r ref, it *item) {
	if !it.plain && it.length > 0 {
		delete(v.other, r)
	}
}
