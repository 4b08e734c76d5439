package host

import (
	"fmt"
	"math"
	"sort"
)

// AddressSpace is the memory of one process: ranges of bytes at 64-bit virtual addresses. It implements portals.Memory.
// Every range stands alone: no access runs from one into the next.
type AddressSpace struct {
	ranges []memoryRange
	next   uint64
	last   int // the range found by the latest Bytes: accesses come in runs
}

type memoryRange struct {
	start uint64
	data  []byte
}

const (
	firstAddress = 1 << 16 // address 0 stays invalid, so that a forgotten address is found
	rangeAlign   = 1 << 12 // ranges begin on pages of their own
)

// NewAddressSpace returns an empty address space.
func NewAddressSpace() *AddressSpace { return &AddressSpace{next: firstAddress} }

// Alloc makes a new zeroed range of n bytes and returns its address. The bytes are the process's own until the end of the
// run. n below 0 or beyond the address space is a programmer's mistake and panics.
func (a *AddressSpace) Alloc(n int) (addr uint64, data []byte) {
	if n < 0 || uint64(n) > math.MaxUint64-a.next-2*rangeAlign {
		panic(fmt.Sprintf("host: allocation of %d bytes", n)) // programmer's mistake: sizes are checked where they are read
	}
	addr = a.next
	data = make([]byte, n)
	a.ranges = append(a.ranges, memoryRange{start: addr, data: data})
	a.next = (addr + uint64(n) + 2*rangeAlign - 1) &^ (rangeAlign - 1) // a hole of at least a byte between ranges
	return addr, data
}

// Bytes returns the n bytes at addr, or false if they do not lie within one range. A length of 0 is valid at any address of a
// range and just behind its end.
func (a *AddressSpace) Bytes(addr, n uint64) ([]byte, bool) {
	if a.last < len(a.ranges) {
		if b, ok := a.ranges[a.last].bytes(addr, n); ok {
			return b, true
		}
	}
	i := sort.Search(len(a.ranges), func(i int) bool { return a.ranges[i].start > addr }) - 1
	if i < 0 {
		return nil, false
	}
	b, ok := a.ranges[i].bytes(addr, n)
	if ok {
		a.last = i
	}
	return b, ok
}

func (r *memoryRange) bytes(addr, n uint64) ([]byte, bool) {
	if addr < r.start {
		return nil, false
	}
	off := addr - r.start
	if size := uint64(len(r.data)); off > size || n > size-off {
		return nil, false
	}
	return r.data[off : off+n : off+n], true
}
