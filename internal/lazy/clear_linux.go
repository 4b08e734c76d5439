package lazy

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/spinsim/spinsim/internal/memory"
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

// prepared is how many bytes of Go's heap have been prepared.
var prepared atomic.Int64

// Prepare lets large pages back the next n bytes by which Go's heap grows: what
// thousands of nodes take then needs few faults, and few entries of the
// processor's TLB. The heap keeps them for what comes later. It takes half of the
// available memory at most, as the system may refuse more, and does nothing if
// the process has a limit of memory.
func Prepare(n int) {
	before := prepared.Load()
	if n < small || int64(n) <= before {
		return // Available reads files, for longer than a small run takes
	}
	n = int(min(int64(n), memory.Available()/2))
	if n < small || int64(n) <= before || !prepared.CompareAndSwap(before, int64(n)) || len(memory.Bounds()) > 0 {
		return
	}
	// The heap grows by an object of that size. Nobody writes to it, so that it
	// takes nothing, and a collection makes room of it.
	Huge(make([]byte, int64(n)-before))
	runtime.GC()
}
