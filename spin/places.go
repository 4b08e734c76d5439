package spin

import "unsafe"

// These functions return where a handler runs, for which message, and the
// memories of that place and that message (docs/abi.md, Memories of clusters
// and messages).

// RuntimeBegin and RuntimeEnd stand around code that stands for what some devices
// do in hardware (docs/abi.md, What a runtime does).
func RuntimeBegin() { runtimeBegin() }

// RuntimeEnd is the end of what RuntimeBegin has begun.
func RuntimeEnd() { runtimeEnd() }

// NumClusters returns the number of clusters of HPUs on the device.
func NumClusters() int { return int(numClusters()) }

// MyCluster returns the cluster that the handler runs in, from 0. It does not
// change while the handler runs.
func MyCluster() int { return int(myCluster()) }

// FlowID returns a number from 0 for the message. Among the messages that
// handlers of the device are working on, it is unique: the lowest that was free
// when the message came. All handlers of a message see the same number; a later
// message may get it again.
func FlowID() uint32 { return flowID() }

// Scratchpad returns the memory of a cluster, which the handlers of an entry
// share. It is empty if there is none.
func Scratchpad(cluster int) []byte { return place(scratchpad(uint32(cluster))) }

// MessageMemory returns the memory of the message that is being handled. Its
// handlers share it and its header handler initialises it. It is empty if there
// is none.
func MessageMemory() []byte { return place(messageMemory()) }

// ScratchpadOf returns the beginning of a cluster's memory as a T, which must
// not contain pointers. It returns nil if the memory is too short.
func ScratchpadOf[T any](cluster int) *T { return whole[T](scratchpad(uint32(cluster))) }

// OfMessage returns the beginning of [MessageMemory] as a T, which must not
// contain pointers. It returns nil if the memory is too short.
func OfMessage[T any]() *T { return whole[T](messageMemory()) }

// place unpacks an answer of the device: the address is below, the length
// above.
func place(m uint64) []byte {
	if m == 0 {
		return nil
	}
	return Ptr(m).Bytes(uint32(m >> 32))
}

func whole[T any](m uint64) *T {
	var zero T
	if m>>32 < uint64(unsafe.Sizeof(zero)) {
		return nil
	}
	return At[T](Ptr(m))
}

// Wait32 waits while 32 aligned bits of HPU memory have the expected value. It
// returns at once if they already have another. A waiting handler gives its
// processor away and uses no budget. It sees the stores of other handlers when
// those suspend or end, the bytes that DMA has read, and the writes of the
// host. Suspends.
func Wait32(p *uint32, expected uint32) { wait32(p, expected) }
