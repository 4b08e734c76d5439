package spin

import "unsafe"

// Nobody waits for posted writes (docs/abi.md, Posted writes). The device takes
// the bytes at the call. The completion handler of the message begins when all
// posted writes of its header and payload handlers have landed.

// DMAToHostPosted writes b to host memory and goes on, without a handle.
// Suspends while the device has no room for it.
func DMAToHostPosted(space Space, offset uint64, b []byte) Result {
	return dmaToHostPosted(space, offset, unsafe.SliceData(b), uint32(len(b)))
}

// WriteHostPosted is [DMAToHostPosted] of a variable, given as for [WriteHost].
func WriteHostPosted(space Space, offset uint64, v unsafe.Pointer, size uintptr) Result {
	return dmaToHostPosted(space, offset, (*byte)(v), uint32(size))
}

// HostWrite writes 8 bytes to host memory at an address that is a multiple of
// 8. One command carries them, so they land together; the write is posted.
// Suspends while the device has no room for it.
func HostWrite(space Space, offset, value uint64) Result { return hostWrite(space, offset, value) }

// HostWriteNB is [HostWrite] with a handle, like other non-blocking operations.
func HostWriteNB(space Space, offset, value uint64) Handle { return hostWriteNB(space, offset, value) }
