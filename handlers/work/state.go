// Package work spends a chosen time per packet. It is the handler for measuring
// how many HPUs a handler time needs (sPIN'17 §3, Little's law).
package work

import "structs"

// MaxHPUs is the number of HPUs the state has room for; a power of two.
const MaxHPUs = 64

// State is the HPU memory of an entry that works.
type State struct {
	_          structs.HostLayout
	Iterations uint64          `spin:"unit=rounds"` // of the loop, per packet; the host sets it
	Results    [MaxHPUs]uint64 // one per HPU, so that the work cannot be optimised away
}

// Seed returns the initial state of the generator for a packet at an offset of
// its message.
func Seed(offset uint64) uint64 { return offset | 1 }

// Step is one iteration of the loop. It is a shift-register generator: each
// step depends on the previous one, so none can be skipped.
func Step(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}
