package hpu

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"github.com/spinsim/spinsim/internal/memory"
)

// madvNoHugePage stops the kernel from backing a program of a few pages with
// two mebibytes.
const madvNoHugePage = 15

func reserve(n int) ([]byte, error) {
	memory.Reserve(n)
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		memory.Exhausted(n)
		return nil, fmt.Errorf("reserving %d bytes for handler memory: %w", n, err)
	}
	// EINVAL means a kernel without huge pages.
	if err := syscall.Madvise(b, madvNoHugePage); err != nil && err != syscall.EINVAL {
		return nil, fmt.Errorf("reserving %d bytes for handler memory: %w", n, err)
	}
	return b, nil
}

// discard makes b zeros without backing.
func discard(b []byte) error {
	if err := syscall.Madvise(b, syscall.MADV_DONTNEED); err != nil {
		return fmt.Errorf("giving back %d bytes of handler memory: %w", len(b), err)
	}
	return nil
}

// pagemap tells which pages of the process are backed; nil: nobody tells, or
// pages have another size.
var pagemap = sync.OnceValue(func() *os.File {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil || os.Getpagesize() != pageBytes {
		return nil
	}
	return f
})

// touched appends the pages of b that may hold anything but zeros. known is
// false if the system does not tell: then they are all pages. Reading them to
// find out would take much longer.
func touched(b []byte, pages []int) (list []int, known bool) {
	f := pagemap()
	if f == nil {
		return allPages(b, pages), false
	}
	const present, swapped, each = 1 << 63, 1 << 62, 8 // Documentation/admin-guide/mm/pagemap.rst
	var entries [64 * each]byte
	first := int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))) / pageBytes)
	for at := 0; at < len(b)/pageBytes; at += len(entries) / each {
		part := entries[:min(len(entries), each*(len(b)/pageBytes-at))]
		if _, err := f.ReadAt(part, each*(first+int64(at))); err != nil {
			return allPages(b, pages[:0]), false
		}
		for i := range len(part) / each {
			if binary.LittleEndian.Uint64(part[each*i:])&(present|swapped) != 0 {
				pages = append(pages, at+i)
			}
		}
	}
	return pages, true
}

func release(b []byte) error { return syscall.Munmap(b) }
