package nodes

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

// A payload is a sequence of words. The first word depends on source, tag and
// number of the message. Each further word is larger by step, so that all words
// differ.
const (
	wordBytes = 8
	step      = 0x9e3779b97f4a7c15
)

func firstWord(s mpi.Status) uint64 {
	x := uint64(s.Source)*0xbf58476d1ce4e5b9 + uint64(s.Tag)*0x94d049bb133111eb + uint64(s.Sequence)*0xd6e8feb86659fd93
	return x ^ x>>29
}

// fill writes the payload of a message from offset at on, a multiple of 8.
func fill(at int, b []byte, s mpi.Status) {
	x := firstWord(s) + uint64(at/wordBytes)*step
	for ; len(b) >= wordBytes; b = b[wordBytes:] {
		binary.LittleEndian.PutUint64(b, x)
		x += step
	}
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
}

// check compares the payload of a message with the bytes that its sender wrote.
func check(v runtime.View, s mpi.Status) error {
	for at, b := range v.Parts() {
		if err := checkPart(at, b, s); err != nil {
			return err
		}
	}
	return nil
}

// checkPart is check for bytes from offset at on.
func checkPart(at int, b []byte, s mpi.Status) error {
	first := firstWord(s)
	for len(b) > 0 {
		k := at / wordBytes
		x := first + uint64(k)*step
		if at%wordBytes == 0 && len(b) >= wordBytes {
			if got := binary.LittleEndian.Uint64(b); got != x {
				return fmt.Errorf("message %d from rank %d with tag %d: bytes %d to %d of %d are %#x, %#x was sent",
					s.Sequence, s.Source, s.Tag, at, at+wordBytes-1, s.Bytes, got, x)
			}
			at, b = at+wordBytes, b[wordBytes:]
			continue
		}
		if want := byte(x >> (8 * (at % wordBytes))); b[0] != want {
			return fmt.Errorf("message %d from rank %d with tag %d: byte %d of %d is %#02x, %#02x was sent",
				s.Sequence, s.Source, s.Tag, at, s.Bytes, b[0], want)
		}
		at, b = at+1, b[1:]
	}
	return nil
}
