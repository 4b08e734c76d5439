package memcached

import "github.com/spinsim/spinsim/host"

// ClassSizes lists the sizes of chunks.
func (s *Store) ClassSizes() (all []int) {
	for _, c := range s.classes {
		all = append(all, c.size)
	}
	return all
}

// Span returns the address and the length of the item of a key.
func (s *Store) Span(key []byte) (addr uint64, n int, ok bool) {
	r := s.find(key, hash(key))
	if r == 0 {
		return 0, 0, false
	}
	return s.addr(r), s.item(r).bytes(), true
}

// Kept returns how many values are stored byte by byte.
func (s *Store) Kept() int { return len(s.values.other) }

// Flat is memory that takes no time and whose pages are all present.
type Flat struct{ next uint64 }

// Alloc implements Memory.
func (f *Flat) Alloc(n int) (addr uint64) {
	addr = f.next + host.PageBytes
	f.next = addr + uint64(n)
	return addr
}

// Read implements Memory.
func (*Flat) Read(uint64, int) {}

// Write implements Memory.
func (*Flat) Write(uint64, int) {}
