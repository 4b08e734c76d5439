package memcached

// ClassSizes are the sizes of chunks.
func (s *Store) ClassSizes() (all []int) {
	for _, c := range s.classes {
		all = append(all, c.size)
	}
	return all
}

// Span is where the item of a key lies, and how long it is.
func (s *Store) Span(key []byte) (addr uint64, n int, ok bool) {
	r := s.find(key, hash(key))
	if r == 0 {
		return 0, 0, false
	}
	return s.addr(r), s.item(r).bytes(), true
}

// Kept is how many values are kept byte by byte.
func (s *Store) Kept() int { return len(s.values.other) }
