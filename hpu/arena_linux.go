package hpu

import (
	"fmt"
	"syscall"

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

func release(b []byte) error { return syscall.Munmap(b) }
