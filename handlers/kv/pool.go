//go:build !tinygo

package kv

// pool is the unused memory of a server. Blocks of a class are cut from memory
// that was never used or, when there is none left, from larger blocks. They are
// never put together again.
type pool struct {
	free [MaxClass + 1][]uint64 // places
	next uint64                 // from here on memory was never used
	end  uint64
}

// take allocates a block.
func (p *pool) take(class uint32) (place uint64, ok bool) {
	if class > MaxClass {
		return 0, false
	}
	if n := len(p.free[class]); n > 0 {
		place = p.free[class][n-1]
		p.free[class] = p.free[class][:n-1]
		return place, true
	}
	size := uint64(64) << class
	if p.end-p.next >= size {
		p.next += size
		return p.next - size, true
	}
	if place, ok = p.take(class + 1); ok {
		p.give(place+size, class)
	}
	return place, ok
}

// give frees a block.
func (p *pool) give(place uint64, class uint32) { p.free[class] = append(p.free[class], place) }

// has reports whether take would find a block.
func (p *pool) has(class uint32) bool {
	for c := class; c <= MaxClass; c++ {
		if len(p.free[c]) > 0 {
			return true
		}
	}
	return p.end-p.next >= uint64(64)<<class
}
