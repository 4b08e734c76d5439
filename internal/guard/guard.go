// Package guard finds programs of a simulated host that access the memory of
// their process without touching it first. The memory of host.AddressSpace then
// has page protection that the real processor checks. It is for tests, on Linux
// (amd64, arm64). Elsewhere, and until somebody calls Enable, it does nothing.
//
// Guarded memory is mapped twice. Devices use one mapping, which is always
// open. Programs use the other, which is closed. A touch opens the pages that
// it names, for reading or for writing. When the program waits, all pages are
// closed again (after many waits: now and then). So a program that reaches
// bytes in any other way, or keeps them for too long, causes a fault of the
// processor at that instruction, not a wrong result later.
package guard

import "sync/atomic"

// oneIn is one in how many address spaces is guarded. 0: none.
var oneIn, made atomic.Int64

// Enable guards one in n of the address spaces that are made from now on. All
// processes of a program run the same code, so a few of them find its mistakes:
// the kernel takes longer for a guarded one than the simulator for the rest. The
// build tag invariants guards all, from the beginning.
func Enable(n int) {
	if oneIn.Load() != 1 {
		oneIn.Store(int64(n))
	}
}
