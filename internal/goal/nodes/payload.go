package nodes

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/mpi"
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

// fill writes the payload of a message.
func fill(b []byte, s mpi.Status) {
	x := firstWord(s)
	for ; len(b) >= wordBytes; b = b[wordBytes:] {
		binary.LittleEndian.PutUint64(b, x)
		x += step
	}
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
}

// check compares the payload of a message with the bytes that its sender wrote.
func check(b []byte, s mpi.Status) error {
	x, n := firstWord(s), len(b)
	for ; len(b) >= wordBytes; b = b[wordBytes:] {
		if got := binary.LittleEndian.Uint64(b); got != x {
			return fmt.Errorf("message %d from rank %d with tag %d: bytes %d to %d of %d are %#x, %#x was sent",
				s.Sequence, s.Source, s.Tag, n-len(b), n-len(b)+wordBytes-1, n, got, x)
		}
		x += step
	}
	for i := range b {
		if want := byte(x >> (8 * i)); b[i] != want {
			return fmt.Errorf("message %d from rank %d with tag %d: byte %d of %d is %#02x, %#02x was sent",
				s.Sequence, s.Source, s.Tag, n-len(b)+i, n, b[i], want)
		}
	}
	return nil
}
