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

const maxRanks = 1 << 20

// Match bits hold a message's context (12 bits), source (20 bits) and tag (32
// bits). A receive ignores the fields for which it has a wildcard. The type of
// a context has 16 bits, but communicators use only 12 (maxComms).
const (
	sourceShift         = 32
	contextShift        = 52
	tagMask      uint64 = 1<<sourceShift - 1
	sourceMask   uint64 = (maxRanks - 1) << sourceShift
)

func matchBits(e envelope) uint64 {
	return uint64(e.context)<<contextShift | uint64(e.source)<<sourceShift | uint64(e.tag)
}

// criterion returns the match bits of a receive and the bits it ignores.
func criterion(e envelope) (match, ignore uint64) {
	if e.source == AnySource {
		ignore, e.source = sourceMask, 0
	}
	if e.tag == AnyTag && e.ignore == 0 {
		ignore |= tagMask
		e.tag = 0
	}
	ignore |= e.ignore&tagMask | e.ignore&^exact>>sourceShift<<contextShift
	return matchBits(e), ignore
}

func envelopeOf(match uint64) envelope {
	return envelope{source: int(match & sourceMask >> sourceShift), tag: uint32(match & tagMask), context: uint16(match >> contextShift)}
}

// Header data hold the length of the message (31 bits), a bit that is set when
// the sender waits until the message is received, and the message's number in
// the order from its sender to its receiver (31 bits). The highest bit marks an
// announcement (matching.Large).
const (
	lengthShift  = 32
	maxMessage   = 1<<31 - 1
	synchronous  = 1 << 31
	sequenceMask = synchronous - 1
)

func headerData(length int, sequence uint32, large, wait bool) uint64 {
	d := uint64(length)<<lengthShift | uint64(sequence)
	if large {
		d |= matching.Large
	}
	if wait {
		d |= synchronous
	}
	return d
}

func statusOf(e envelope, data uint64) Status {
	return Status{Source: e.source, Tag: e.tag, Bytes: int(data &^ matching.Large >> lengthShift), Sequence: uint32(data & sequenceMask)}
}
