package memory

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"unsafe"
)

// hugeBytes is how much of the heap is on huge pages: two simulations of 512 ranks. It is address space, none of it is taken before it is used.
const hugeBytes = 256 << 20

// HugePages asks the kernel for pages of two mebibytes for the first 256 MiB of the heap from here on, where that is left to programs (transparent huge
// pages: madvise). Each of many nodes has a few lines in many pages, of which the processor finds 4,096, 16 MiB, without a walk through tables. A page is
// given when the first of its bytes is used: a heap of some hundred MB takes a tenth to four tenths more. With a limit of memory that is not far above, nothing is changed.
func HugePages() { hugePages() }

var hugePages = sync.OnceFunc(func() {
	state, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || !bytes.Contains(state, []byte("[madvise]")) {
		return
	}
	if limit := debug.SetMemoryLimit(math.MinInt64); limit < 8*hugeBytes {
		return
	}
	heap := make([]byte, hugeBytes) // fresh from the kernel, which Go therefore does not touch, and which it keeps as it gives memory back
	advise(heap)
	runtime.KeepAlive(heap)
	heap = nil //nolint:ineffassign,wastedassign // else it is alive to the end
	runtime.GC()
})

// advise is the request for huge pages that lie in b. It may be refused.
func advise(b []byte) {
	const page, madvHugePage = 2 << 20, 14
	first := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % page
	_ = syscall.Madvise(b[first:], madvHugePage)
}
