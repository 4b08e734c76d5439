//go:build linux && (amd64 || arm64)

package guard

import (
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Space is the guarded memory of an address space.
type Space struct {
	mappings []mapping
	opened   []int // mappings with open pages
	closings int   // calls of Close
	chunks   []chunk
	rest     chunk // of the last small chunk, for the next pieces
}

// chunk is memory that is mapped twice and divided into pieces. Mapping each
// small piece by itself would take longer than its use.
type chunk struct{ devices, cores []byte }

// chunkBytes is the length of a chunk for small pieces, a multiple of a page. A
// piece of more than a quarter has its own chunk.
const chunkBytes = 256 << 10

// mapping is one piece of memory.
type mapping struct {
	// whole pages of the same memory; nil: ordinary memory, which is not
	// guarded
	devices, cores []byte
	open           []byte // protection of each page for programs
	from, to       int    // pages that may be open
}

// most is how many pieces of memory are guarded at a time. The kernel allows a
// process 65,530 mappings; more pieces are ordinary memory.
const most = 20_000

// thorough is how many calls of Close close all pages. Later calls do so more
// and more rarely, see rarely.
const thorough = 20

// mostAtOnce is the largest number of pages to open together: 256 KiB if a page
// has 4 KiB.
const mostAtOnce = 64

var live atomic.Int64

var pageSize = os.Getpagesize()

// New returns a space, or nil if this one is not guarded.
func New() *Space {
	if n := oneIn.Load(); n == 0 || made.Add(1)%n != 0 {
		return nil
	}
	return new(Space)
}

// Alloc makes the next piece of memory, n zeroed bytes, and returns the mapping
// for devices.
func (s *Space) Alloc(n int) []byte {
	m := mapping{}
	if n > 0 && live.Add(1) <= most {
		m = s.piece((n + pageSize - 1) / pageSize * pageSize)
	}
	if n > 0 && m.devices == nil {
		live.Add(-1)
	}
	s.mappings = append(s.mappings, m)
	if m.devices == nil {
		return make([]byte, n)
	}
	return m.devices[:n:n]
}

// piece takes n bytes, whole pages, from a chunk. If mapping fails it returns
// the zero mapping.
func (s *Space) piece(n int) mapping {
	from, length := &s.rest, chunkBytes
	if n > chunkBytes/4 {
		from, length = new(chunk), n
	}
	if len(from.devices) < n {
		c, ok := twice(length)
		if !ok {
			return mapping{}
		}
		s.chunks = append(s.chunks, c)
		*from = c
	}
	m := mapping{devices: from.devices[:n:n], cores: from.cores[:n:n], open: make([]byte, n/pageSize)}
	from.devices, from.cores = from.devices[n:], from.cores[n:]
	return m
}

// twice maps n bytes of memory twice, the second mapping closed. It returns
// false if mapping fails.
func twice(n int) (c chunk, ok bool) {
	devices, errno := call(syscall.SYS_MMAP, 0, uintptr(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON, ^uintptr(0))
	if errno != 0 {
		return chunk{}, false
	}
	const mayMove = 1
	// a length of 0 asks for a second mapping
	cores, errno := call(syscall.SYS_MREMAP, devices, 0, uintptr(n), mayMove, 0)
	if errno != 0 {
		unmap(bytesAt(devices, n))
		return chunk{}, false
	}
	c = chunk{devices: bytesAt(devices, n), cores: bytesAt(cores, n)}
	protect(c.cores, syscall.PROT_NONE)
	return c, true
}

// Cores returns bytes of piece i at offset off in the mapping for programs; b
// is the same bytes in the mapping for devices.
func (s *Space) Cores(i int, b []byte, off uint64) []byte {
	if m := &s.mappings[i]; m.cores != nil {
		return m.cores[off : off+uint64(len(b)) : off+uint64(len(b))]
	}
	return b
}

// rarely returns n if one in n calls of Close closes: 1 for calls 1 to 39, 2
// for 40 to 79, 4 for 80 to 159, and so on. Closing a page costs the kernel as
// much time as the simulator needs between two calls, and most mistakes of a
// program show in its first calls.
func (s *Space) rarely() int {
	if pause := uint(s.closings) / thorough; pause > 1 {
		return 1 << (bits.Len(pause) - 1)
	}
	return 1
}

// Open lets the program read n bytes, at least 1, from offset off of piece i
// until Close; with write it may also write them. It opens whole blocks of
// rarely() pages, so that pages that stay open for long need fewer calls of the
// kernel.
func (s *Space) Open(i int, off, n uint64, write bool) {
	m := &s.mappings[i]
	if m.cores == nil {
		return
	}
	want := byte(syscall.PROT_READ)
	if write {
		want |= syscall.PROT_WRITE
	}
	block := min(s.rarely(), mostAtOnce)
	from, to := int(off)/pageSize/block*block, min((int(off+n-1)/pageSize/block+1)*block, len(m.open))
	if m.from == m.to {
		s.opened = append(s.opened, i)
		m.from, m.to = from, to
	}
	m.from, m.to = min(m.from, from), max(m.to, to)
	for p := from; p < to; {
		if m.open[p]&want == want {
			p++
			continue
		}
		first := p
		for ; p < to && m.open[p]&want != want; p++ {
			m.open[p] |= want
		}
		// writing includes reading, so this takes nothing away
		protect(m.cores[first*pageSize:p*pageSize], int(want))
	}
}

// Close closes the pages that Open has opened, or leaves that to a later call,
// see rarely.
func (s *Space) Close() {
	if s.closings++; s.closings%s.rarely() != 0 {
		return
	}
	for _, i := range s.opened {
		m := &s.mappings[i]
		protect(m.cores[m.from*pageSize:m.to*pageSize], syscall.PROT_NONE)
		clear(m.open[m.from:m.to])
		m.from, m.to = 0, 0
	}
	s.opened = s.opened[:0]
}

// Find returns the piece of an address in the mapping for programs, and the
// offset in it. It returns false if there is none.
func (s *Space) Find(addr uintptr) (i int, off uint64, ok bool) {
	for i := range s.mappings {
		if m := s.mappings[i].cores; m != nil {
			if first := uintptr(unsafe.Pointer(&m[:1][0])); addr >= first && addr-first < uintptr(len(m)) {
				return i, uint64(addr - first), true
			}
		}
	}
	return 0, 0, false
}

// Release frees the memory. Nobody may use it any more.
func (s *Space) Release() {
	for i := range s.mappings {
		if s.mappings[i].devices != nil {
			live.Add(-1)
		}
	}
	for _, c := range s.chunks {
		unmap(c.cores)
		unmap(c.devices)
	}
	*s = Space{}
}

func call(number, a, b, c, d, e uintptr) (uintptr, syscall.Errno) {
	r, _, errno := syscall.Syscall6(number, a, b, c, d, e, 0)
	return r, errno
}

// bytesAt returns memory that does not belong to Go.
func bytesAt(addr uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

func protect(b []byte, prot int) {
	if err := syscall.Mprotect(b, prot); err != nil {
		panic(fmt.Sprintf("guard: mprotect of %d bytes: %v", len(b), err)) //lint:panic the system allowed this before
	}
}

func unmap(b []byte) {
	if _, errno := call(syscall.SYS_MUNMAP, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0, 0, 0); errno != 0 {
		panic(fmt.Sprintf("guard: munmap of %d bytes: %v", len(b), errno)) //lint:panic the system allowed this before
	}
}
