package spin

import "unsafe"

// Writes that nobody waits for (docs/abi.md, Posted writes): the device takes
// the bytes at the call, and the completion handler of the message begins when
// all those of its header and payload handlers have landed.

// DMAToHostPosted writes b to host memory and goes on, without a handle.
// Suspends while the device has no room for it.
func DMAToHostPosted(space Space, offset uint64, b []byte) Result {
	return dmaToHostPosted(space, offset, unsafe.SliceData(b), uint32(len(b)))
}

// WriteHostPosted is [DMAToHostPosted] of a variable, given as for [WriteHost].
func WriteHostPosted(space Space, offset uint64, v unsafe.Pointer, size uintptr) Result {
	return dmaToHostPosted(space, offset, (*byte)(v), uint32(size))
}

// HostWrite writes 8 bytes to a place in host memory whose address is a
// multiple of 8, in one command that carries them: all at once, and posted.
// Suspends while the device has no room for it.
func HostWrite(space Space, offset, value uint64) Result { return hostWrite(space, offset, value) }

// HostWriteNB is [HostWrite] with a handle, as of other non-blocking operations.
func HostWriteNB(space Space, offset, value uint64) Handle { return hostWriteNB(space, offset, value) }
