package gsas

import (
	"fmt"

	"github.com/spinsim/spinsim/exanet/gvas"
)

// Pointer is the address of a byte of the global memory: node, process of the
// node, and virtual address in that. It is comparable, and can be sent to
// others in 64 bits. The zero Pointer points at nothing. A pointer does not
// know how long its memory lives: the home does.
type Pointer gvas.Target

// Null is the zero Pointer.
const Null Pointer = 0

// Target is the address.
func (p Pointer) Target() gvas.Target { return gvas.Target(p) }

// Node is the node whose memory it is.
func (p Pointer) Node() int { return gvas.Target(p).Node() }

// Plus returns the pointer to n bytes further on, or back. One that leaves the
// address space becomes Null: no operation takes it.
func (p Pointer) Plus(n int64) Pointer {
	t, err := gvas.Target(p).Add(n)
	if err != nil {
		return Null
	}
	return Pointer(t)
}

// String is the address as package gvas writes it, or null.
func (p Pointer) String() string {
	if p == Null {
		return "null"
	}
	return fmt.Sprint(gvas.Target(p))
}
