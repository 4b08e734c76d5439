package lazy

import (
	"os"
	"syscall"
	"unsafe"
)

// Clear gives the memory of a large part of what Bytes has returned back, in
// whole pages, which are zero from then on, whoever still looks at them. A
// small part stays as it is.
func Clear(b []byte) {
	page := os.Getpagesize()
	// to the next boundary
	before := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(page-1))
	if len(b) < before+small {
		return
	}
	// what stays is given back by Free
	_ = syscall.Madvise(b[before:before+(len(b)-before)/page*page], syscall.MADV_DONTNEED)
}
