package gsas

import (
	"fmt"

	"github.com/spinsim/spinsim/exanet"
)

// Pointer is the address of a byte of the global memory: node, process of the
// node, and virtual address in that process. It is comparable, and fits into a
// message as 64 bits. The zero Pointer points at nothing. Only the home knows
// whether the memory is still allocated.
type Pointer exanet.Target

// Null is the zero Pointer.
const Null Pointer = 0

// Target returns the address.
func (p Pointer) Target() exanet.Target { return exanet.Target(p) }

// Node returns the node that owns the memory.
func (p Pointer) Node() int { return exanet.Target(p).Node() }

// Plus returns the pointer n bytes further on, or back. A pointer that leaves
// the address space becomes Null, which every operation refuses.
func (p Pointer) Plus(n int64) Pointer {
	t, err := exanet.Target(p).Add(n)
	if err != nil {
		return Null
	}
	return Pointer(t)
}

// String returns the address as exanet.Target writes it, or "null".
func (p Pointer) String() string {
	if p == Null {
		return "null"
	}
	return fmt.Sprint(exanet.Target(p))
}
