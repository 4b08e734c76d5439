// Package accumulate multiplies an array of complex numbers into one in the
// target's memory, element by element, on the network interface (sPIN'17
// §4.4.2).
//
// Each packet's handler reads its part of the target array into HPU memory,
// multiplies it and writes it back. Both transfers block, so that an HPU works
// on another packet meanwhile. A buffer belongs to one handler from its read to
// its write. The state keeps a pool of buffers, at least as many as the device
// has HPU contexts, so that a handler never waits for one.
//
// Elements must not straddle packets: the message, its offset in the entry and
// the packet size are multiples of [ElementSize]. If two messages change the
// same elements, their order is undefined.
package accumulate

import "structs"

// ElementSize is the size of an element: a double-precision complex number, bytes.
const ElementSize = 16

// State heads the HPU memory of an entry that multiplies. The buffers lie behind it.
type State struct {
	_          structs.HostLayout
	Free       uint64 `spin:"default=(1<<min(hpus*contexts,64))-1"` // bit i: buffer i is free
	BufferSize uint32 `spin:"unit=bytes default=mtu"`               // the largest payload of a packet
	Reserved   uint32 `spin:"max=0"`                                // 0
}
