package hpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
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

// touched tells of each page of b whether it may hold anything but zeros.
// Reading all pages to find out would take much longer, but that is what remains
// on a system that does not tell or has other pages.
func touched(b []byte) []bool {
	pages := make([]bool, len(b)/pageBytes)
	entries := make([]byte, 8*len(pages))
	f, err := os.Open("/proc/self/pagemap")
	if err == nil {
		_, err = f.ReadAt(entries, int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))/pageBytes*8))
		err = errors.Join(err, f.Close())
	}
	for i := range pages {
		const present, swapped = 1 << 63, 1 << 62 // Documentation/admin-guide/mm/pagemap.rst
		pages[i] = err != nil || os.Getpagesize() != pageBytes || binary.LittleEndian.Uint64(entries[8*i:])&(present|swapped) != 0
	}
	return pages
}

func release(b []byte) error { return syscall.Munmap(b) }
