package mpi

import (
	"math"
	"math/bits"

	"github.com/spinsim/spinsim/handlers/matching"
)

// Wildcards of receives.
const (
	AnySource = -1
	AnyTag    = math.MaxUint32
)

// maxRanks is how many ranks a world has at most.
const maxRanks = 1 << 20

// layout says where match bits hold the envelope of a message: the context on top, the source and the tag below. The context has what the
// other two leave it: 16 bits in worlds of up to 65,536 ranks, down to 12 in the largest.
type layout struct{ sourceBits uint }

const (
	tagBits     = 32
	contextBits = 16
)

// layoutFor is the layout of a world of so many ranks.
func layoutFor(ranks int) layout {
	return layout{uint(max(bits.Len(uint(ranks-1)), 64-tagBits-contextBits))}
}

func (l layout) sourceMask() uint64 { return (1<<l.sourceBits - 1) << tagBits }

func (l layout) matchBits(e envelope) uint64 {
	return uint64(e.context)<<(tagBits+l.sourceBits) | uint64(e.source)<<tagBits | uint64(e.tag)
}

// criterion returns the match bits of a receive and those it ignores.
func (l layout) criterion(e envelope) (match, ignore uint64) {
	if e.source == AnySource {
		ignore, e.source = l.sourceMask(), 0
	}
	if e.tag == AnyTag {
		ignore |= 1<<tagBits - 1
		e.tag = 0
	}
	return l.matchBits(e), ignore
}

// envelopeOf reads match bits.
func (l layout) envelopeOf(match uint64) envelope {
	return envelope{source: int(match & l.sourceMask() >> tagBits), tag: uint32(match), context: uint16(match >> (tagBits + l.sourceBits))}
}

// statusOf reads match bits and header data of a message.
func (l layout) statusOf(match, data uint64) Status { return statusOf(l.envelopeOf(match), data) }

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

// statusOf reads the header data of a message.
func statusOf(e envelope, data uint64) Status {
	return Status{Source: e.source, Tag: e.tag, Bytes: int(data &^ matching.Large >> lengthShift), Sequence: uint32(data)}
}
