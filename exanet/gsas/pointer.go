package gsas

import (
	"fmt"

	"github.com/spinsim/spinsim/exanet/gvas"
)

// Pointer is the address of a byte of the global memory: node, process of the
// node, and virtual address in that process. It is comparable, and fits into a
// message as 64 bits. The zero Pointer points at nothing. Only the home knows
// whether the memory is still allocated.
type Pointer gvas.Target

// Null is the zero Pointer.
const Null Pointer = 0

// Target returns the address.
func (p Pointer) Target() gvas.Target { return gvas.Target(p) }

// Node returns the node that owns the memory.
func (p Pointer) Node() int { return gvas.Target(p).Node() }

// Plus returns the pointer n bytes further on, or back. A pointer that leaves
// the address space becomes Null, which every operation refuses.
func (p Pointer) Plus(n int64) Pointer {
	t, err := gvas.Target(p).Add(n)
	if err != nil {
		return Null
	}
	return Pointer(t)
}

// String returns the address as package gvas writes it, or "null".
func (p Pointer) String() string {
	if p == Null {
		return "null"
	}
	return fmt.Sprint(gvas.Target(p))
}
