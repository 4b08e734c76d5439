package memcached

import (
	"errors"
	"fmt"
)

// Sizes of memcached 1.6 on 64 bits (memcached.h, slabs.c), bytes.
const (
	headerBytes = 48      // of an item (sizeof(item))
	casBytes    = 8       // its unique number
	flagBytes   = 4       // its flags, if there are any
	alignBytes  = 8       // of chunks (CHUNK_ALIGN_BYTES)
	pageBytes   = 1 << 20 // of a slab, and the largest item (item_size_max)
	halfBytes   = 1 << 19 // the largest chunk (slab_chunk_max)
	mostClasses = 63      // of them (MAX_NUMBER_OF_SLAB_CLASSES less one)
)

// MaxKey is the longest key (KEY_MAX_LENGTH).
const MaxKey = 250

// BucketBytes is the memory of a bucket of the hash table, bytes: a pointer.
const BucketBytes = 8

// Config is the relevant options of the server; 0: memcached's default.
type Config struct {
	// Limit is the memory for items in bytes (-m), at least 1 MiB. Default 64 MiB.
	Limit int64
	// Factor is the ratio between sizes of chunks (-f), more than 1. Default
	// 1.25.
	Factor float64
	// Chunk is the least room for key, value and flags (-n), 1 B to 1 KiB. Default 48.
	Chunk int
	// HashPower is the logarithm of the number of buckets of the hash table, 12
	// to 32 (-o hashpower). Default: at least one bucket for each 256 bytes of
	// Limit. memcached begins with 2^16 and doubles them as items arrive.
	HashPower int
	// Bump is the time in seconds for which a used item stays in place after it
	// was moved to the head of the LRU (ITEM_UPDATE_INTERVAL). Default 60;
	// below 0: each use moves it.
	Bump int
}

// normal returns the configuration with its defaults, or the error in it.
func (c Config) normal() (Config, error) {
	if c.Limit == 0 {
		c.Limit = 64 << 20
	}
	if c.Factor == 0 {
		c.Factor = 1.25
	}
	if c.Chunk == 0 {
		c.Chunk = 48
	}
	if c.Bump == 0 {
		c.Bump = 60
	}
	if c.HashPower == 0 {
		for c.HashPower = 12; int64(256)<<c.HashPower < c.Limit && c.HashPower < 32; {
			c.HashPower++
		}
	}
	var wrong []error
	if c.Limit < pageBytes || c.Limit > maxPages*pageBytes {
		wrong = append(wrong, fmt.Errorf("memcached: limit of %d bytes, expected %d to %d", c.Limit, pageBytes, int64(maxPages*pageBytes)))
	}
	if !(c.Factor > 1 && c.Factor <= 100) { // excludes NaN
		wrong = append(wrong, fmt.Errorf("memcached: factor %v, expected more than 1, at most 100", c.Factor))
	}
	if c.Chunk < 1 || c.Chunk > 1<<10 {
		wrong = append(wrong, fmt.Errorf("memcached: chunk of %d bytes, expected 1 to 1,024", c.Chunk))
	}
	if c.HashPower < 12 || c.HashPower > 32 {
		wrong = append(wrong, fmt.Errorf("memcached: hash power %d, expected 12 to 32", c.HashPower))
	}
	return c, errors.Join(wrong...)
}

// ref names an item: the number of its slab from 1, and the number of its
// chunk. 0: none.
type ref uint32

const (
	chunkBits = 14
	maxPages  = 1<<(32-chunkBits) - 1
)

// slab is 1 MiB of memory of a class.
type slab struct {
	class uint8
	base  uint64 // its address
	items []item // no pointers: the garbage collector does not scan them
}

// class is the items of about one size: their chunks, and their LRU.
type class struct {
	size  int // of a chunk
	each  int // chunks per slab
	slabs int
	free  ref // chunks without an item, linked by chain
	fresh ref // the next unused chunk of the latest slab; left chunks follow
	left  int
	head  ref
	tail  ref
	items int
}

// classes returns the classes of a configuration (slabs_init). One more is for
// items beyond the largest chunk, which memcached splits into several.
func classes(c *Config) (all []class) {
	add := func(size int) { all = append(all, class{size: size, each: pageBytes / size}) }
	for size := headerBytes + c.Chunk; float64(size) <= halfBytes/c.Factor && len(all) < mostClasses-1; size = int(float64(size) * c.Factor) {
		size = (size + alignBytes - 1) &^ (alignBytes - 1)
		add(size)
	}
	add(halfBytes)
	add(pageBytes)
	return all
}

// classOf returns the class of an item of n bytes; false: there is none.
func (s *Store) classOf(n int) (int, bool) {
	lo, hi := 0, len(s.classes)
	for lo < hi {
		if mid := (lo + hi) / 2; s.classes[mid].size < n {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(s.classes)
}

func (s *Store) item(r ref) *item { return &s.slabs[r>>chunkBits-1].items[r&(1<<chunkBits-1)] }

// addr returns the address of an item.
func (s *Store) addr(r ref) uint64 {
	page := r>>chunkBits - 1
	return s.slabs[page].base + uint64(r&(1<<chunkBits-1))*uint64(s.classes[s.slabs[page].class].size)
}

// chunk returns room for an item of a class; 0: there is none. The first slab
// of a class may exceed the limit, as in memcached (do_slabs_newslab).
func (s *Store) chunk(i int) (r ref) {
	c := &s.classes[i]
	if r = c.free; r != 0 {
		it := s.item(r)
		s.memory.Read(s.addr(r), headerBytes)
		c.free = it.chain
		return r
	}
	if c.left == 0 {
		base := s.base + uint64(len(s.slabs))*pageBytes
		if int64(len(s.slabs)+1)*pageBytes > s.config.Limit {
			if c.slabs > 0 {
				return 0
			}
			base = s.memory.Alloc(pageBytes)
		}
		s.slabs = append(s.slabs, slab{class: uint8(i), base: base, items: make([]item, c.each)})
		c.fresh, c.left = ref(len(s.slabs))<<chunkBits, c.each
		c.slabs++
	}
	r = c.fresh
	c.fresh++
	c.left--
	return r
}
