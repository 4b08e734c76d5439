// Package guard finds programs of a simulated host that reach into the memory
// of their process without having touched it: host.AddressSpace then has the
// processor watch. It is for tests, on Linux (amd64, arm64); elsewhere, and as
// long as nobody has called Enable, it is nothing.
//
// Guarded memory is mapped twice. Devices use one mapping, which is always
// open. Programs use the other: it is closed, a touch opens the pages that it
// names, for reading or for writing, and when the program waits all pages are
// closed again (after many waits: now and then). So bytes that a program
// reaches in any other way, or keeps for longer than it may, are a fault of the
// processor at the very instruction, not a wrong result later.
package guard

import "sync/atomic"

var enabled atomic.Bool

// Enable has the address spaces that are made from now on guarded. The build
// tag invariants does so from the beginning.
func Enable() { enabled.Store(true) }
