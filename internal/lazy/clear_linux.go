package lazy

import (
	"os"
	"syscall"
	"unsafe"
)

// Clear frees the memory of a large part of a result of Bytes, in whole pages.
// They are zero from then on, also for other users. A small part stays as it
// is.
func Clear(b []byte) {
	page := os.Getpagesize()
	// to the next boundary
	before := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(page-1))
	if len(b) < before+small {
		return
	}
	// Free frees the rest
	_ = syscall.Madvise(b[before:before+(len(b)-before)/page*page], syscall.MADV_DONTNEED)
}

// Huge lets large pages back b, which nobody has written to yet: one fault for
// some hundred pages. Where there are none, nothing changes.
func Huge(b []byte) {
	const hugePage = 1 << 21
	before := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (hugePage - 1))
	if len(b) < before+hugePage {
		return
	}
	_ = syscall.Madvise(b[before:before+(len(b)-before)/hugePage*hugePage], syscall.MADV_HUGEPAGE)
}
