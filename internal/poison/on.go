//go:build invariants

package poison

import "fmt"

// On reports whether released objects are poisoned.
const On = true

// Byte is what released memory is filled with.
const Byte = 0xdb

// Mark is the first field of a pooled object. An object in use has the zero
// value.
type Mark struct{ released bool }

// Live panics if the object was released; what names its kind.
func (m *Mark) Live(what string) {
	if m.released {
		panic(fmt.Sprintf("%s is used after it was given back", what)) //lint:panic a bug
	}
}

// Release marks an object that is released. It panics if it was released
// before.
func (m *Mark) Release(what string) {
	if m.released {
		panic(fmt.Sprintf("%s is given back twice", what)) //lint:panic a bug
	}
	m.released = true
}

// Bytes overwrites memory that is released.
func Bytes(b []byte) {
	b = b[:cap(b)]
	for i := range b {
		b[i] = Byte
	}
}

// Check panics if memory was written after Bytes has overwritten it; what names
// its kind.
func Check(b []byte, what string) {
	for i, v := range b[:cap(b)] {
		if v != Byte {
			panic(fmt.Sprintf("%s was written at byte %d after it was given back", what, i)) //lint:panic a bug
		}
	}
}

// Buffers tracks the buffers in use of a pool of bytes.
type Buffers struct{ live map[*byte]bool }

// Taken notes a buffer with a capacity of at least one byte.
func (s *Buffers) Taken(b []byte) {
	if s.live == nil {
		s.live = map[*byte]bool{}
	}
	s.live[&b[:1][0]] = true
}

// Released poisons a buffer that Taken has noted. It panics if the buffer is
// not in use.
func (s *Buffers) Released(b []byte) {
	p := &b[:1][0]
	if !s.live[p] {
		panic("a buffer is given back that is not in use") //lint:panic a bug
	}
	delete(s.live, p)
	Bytes(b)
}

// Live returns how many buffers are in use.
func (s *Buffers) Live() int { return len(s.live) }

// Count counts the objects of a pool that are in use.
type Count struct{ n int }

// Add counts n more.
func (c *Count) Add(n int) { c.n += n }

// Live returns how many are in use.
func (c *Count) Live() int { return c.n }
