package spin

import "unsafe"

// Where a handler runs, for which message, and the memories that come with both
// (docs/abi.md, Memories of clusters and messages).

// NumClusters returns how many clusters the processors of the device form.
func NumClusters() int { return int(numClusters()) }

// MyCluster returns the cluster that the handler runs in, from 0. It does not
// change while the handler runs.
func MyCluster() int { return int(myCluster()) }

// FlowID returns the number of the message among those that handlers of the
// device are working on, from 0: the lowest that was free when it came. It is
// the same in all handlers of a message; later messages get it again.
func FlowID() uint32 { return flowID() }

// Scratchpad returns the memory of a cluster, which the handlers of an entry
// share; empty: there is none.
func Scratchpad(cluster int) []byte { return place(scratchpad(uint32(cluster))) }

// MessageMemory returns the memory of the message that is being handled, which
// its handlers share and its header handler initialises; empty: there is none.
func MessageMemory() []byte { return place(messageMemory()) }

// ScratchpadOf returns the beginning of the memory of a cluster as a T, which
// must not contain pointers; nil: it is too short.
func ScratchpadOf[T any](cluster int) *T { return whole[T](scratchpad(uint32(cluster))) }

// OfMessage returns the beginning of [MessageMemory] as a T, which must not
// contain pointers; nil: it is too short.
func OfMessage[T any]() *T { return whole[T](messageMemory()) }

// place is the memory that an answer of the device names: the address below, the bytes above.
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

// Wait32 waits until 32 aligned bits of HPU memory have another value than they
// are expected to have, and returns at once if they have one already. Who waits
// gives the processor away and uses up no budget. It sees what other handlers
// have stored when they suspend or end, what DMA has read and what the host has
// written. Suspends.
func Wait32(p *uint32, expected uint32) { wait32(p, expected) }
