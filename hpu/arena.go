package hpu

// arena gives out the linear memories of an engine. It reserves address space
// in large pieces, and the operating system backs each page at the first
// access. A memory that is given back keeps its pages. It is cleared only when
// it is given out again, because most engines end with all their programs.
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

// allPages appends all pages of b.
func allPages(b []byte, pages []int) []int {
	for i := range len(b) / pageBytes {
		pages = append(pages, i)
	}
	return pages
}
