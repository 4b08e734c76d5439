//go:build linux || darwin

package lazy

import (
	"syscall"

	"github.com/spinsim/spinsim/internal/memory"
)

// Bytes returns n zeroed bytes. Only Free frees a large piece.
func Bytes(n int) []byte {
	if n < small {
		return make([]byte, n)
	}
	memory.Reserve(n)
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil { // for example a limit of addresses
		memory.Exhausted(n)
		return make([]byte, n)
	}
	return b
}

// Free frees a result of Bytes as a whole. Nobody may use it any more.
func Free(b []byte) {
	if len(b) < small {
		return
	}
	if err := syscall.Munmap(b); err != nil {
		return // ordinary memory
	}
}
