package hpu

import "github.com/tetratelabs/wazero/experimental"

// arena gives out the linear memories of an engine. It reserves address space
// in large pieces, and the operating system backs each page at the first
// access. A memory that is given back keeps its pages. It is cleared only when
// it is given out again, because most engines end with all their programs.
// arena implements experimental.MemoryAllocator for programs of one size.
type arena struct {
	space []byte           // not given out yet
	all   [][]byte         // pieces, to unmap
	free  map[int][][]byte // memories given back, by size
}

// arenaBytes is how much address space is reserved at a time.
const arenaBytes = 64 << 20

// take returns n zero bytes; n is a multiple of the page size of WebAssembly.
func (a *arena) take(n int) ([]byte, error) {
	if list := a.free[n]; len(list) > 0 {
		b := list[len(list)-1]
		a.free[n] = list[:len(list)-1]
		return b, discard(b)
	}
	if n > len(a.space) {
		piece, err := reserve(max(n, arenaBytes))
		if err != nil {
			return nil, err
		}
		a.all = append(a.all, piece)
		a.space = piece
	}
	b := a.space[:n:n]
	a.space = a.space[n:]
	return b, nil
}

func (a *arena) give(b []byte) {
	if a.free == nil {
		a.free = make(map[int][][]byte)
	}
	a.free[len(b)] = append(a.free[len(b)], b)
}

func (a *arena) close() error {
	var first error
	for _, piece := range a.all {
		if err := release(piece); err != nil && first == nil {
			first = err
		}
	}
	*a = arena{}
	return first
}

// slot is the memory of one program: an experimental.LinearMemory that has its
// full size from the beginning.
type slot struct{ mem []byte }

var _ experimental.LinearMemory = (*slot)(nil)

// Reallocate returns the first size bytes; nil: the memory is smaller.
func (s *slot) Reallocate(size uint64) []byte {
	if size > uint64(len(s.mem)) {
		return nil
	}
	return s.mem[:size]
}

// Free does nothing. The instance gives the memory back to the arena, because
// an error can be reported there.
func (s *slot) Free() {}
