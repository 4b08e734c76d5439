package mpi

import (
	"math"

	"github.com/spinsim/spinsim/handlers/matching"
)

// Wildcards of receives.
const (
	AnySource = -1
	AnyTag    = math.MaxUint32
)

// Match bits hold the communicator (8 bits), the source (20 bits) and the tag (32 bits) of a message; a receive ignores
// those for which it has a wildcard.
const (
	sourceShift        = 32
	sourceBits         = 20
	maxRanks           = 1 << sourceBits
	tagMask     uint64 = 1<<sourceShift - 1
	sourceMask  uint64 = (maxRanks - 1) << sourceShift
)

func matchBits(source int, tag uint32) uint64 { return uint64(source)<<sourceShift | uint64(tag) }

// criterion returns the match bits of a receive and those it ignores.
func criterion(source int, tag uint32) (bits, ignore uint64) {
	if source == AnySource {
		ignore, source = sourceMask, 0
	}
	if tag == AnyTag {
		ignore |= tagMask
		tag = 0
	}
	return matchBits(source, tag), ignore
}

// Header data hold the length of the message (31 bits) and its number among those of its sender to its receiver (32 bits);
// the bit above tells an announcement (matching.Large).
const (
	lengthShift = 32
	maxMessage  = 1<<31 - 1
)

func headerData(length int, sequence uint32, large bool) uint64 {
	d := uint64(length)<<lengthShift | uint64(sequence)
	if large {
		d |= matching.Large
	}
	return d
}

// statusOf reads match bits and header data of a message.
func statusOf(bits, data uint64) Status {
	return Status{
		Source: int(bits & sourceMask >> sourceShift), Tag: uint32(bits & tagMask),
		Bytes: int(data &^ matching.Large >> lengthShift), Sequence: uint32(data),
	}
}
