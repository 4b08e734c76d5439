package port

import "encoding/binary"

// The example datatypes of FPsPIN keeps where it is in an MPI datatype as a
// segment of MPITypes: a stack of loops, of which one is enough here. These are
// offsets in its structures, where pointers of 32 bits take 8 bytes.
const (
	dtSegment = 32 // behind the pointer to it
	dtStack   = dtSegment + 24
	dtLoop    = dtSegment + 1056 // the segment's own
	dtBytes   = 1216             // with the arguments of the copy
	dtVector  = 2 | 8            // of numbers
	dtNumber  = 4
	dtBlock   = 6  // numbers
	dtStride  = 40 // bytes from block to block
)

// unpacked: a message of SLMP brings the numbers of a vector datatype, which are
// in host memory in their blocks. Handlers of a message share the segment, so
// they run one after the other.
func unpacked(t *trial) {
	sent(t)
	pages, whole := t.wantHost[0].offset, t.wantHost[0].bytes
	const block = dtBlock * dtNumber
	blocks := len(whole) / block
	apart := make([]byte, blocks*dtStride)
	for i := range blocks {
		copy(apart[i*dtStride:], whole[i*block:][:block])
	}
	memory := make([]byte, dtBytes)
	le := binary.LittleEndian
	u64 := func(at int, values ...int) {
		for i, v := range values {
			le.PutUint64(memory[at+8*i:], uint64(v))
		}
	}
	u64(0, dtSegment)
	// left and original: blocks, offset, numbers of the block; then the loop
	u64(dtStack+8, blocks, 0, dtBlock, blocks, 0, dtBlock, dtLoop)
	// kind; blocks, no inner loop, numbers of a block, stride; size and extent of
	// a number
	u64(dtLoop, dtVector, blocks, 0, dtBlock, dtStride)
	u64(dtLoop+48, dtNumber, dtNumber)
	t.handlerMem, t.pointers = memory, []int64{0, dtStack + 56}
	one(t)
	t.set = append(t.set, "hpu.contexts: 1")
	t.hostBytes = pages + int64(len(apart))
	t.wantHost, t.wantBefore = []piece{{pages, apart}}, "the blocks of a vector in host memory and an acknowledgement"
}
