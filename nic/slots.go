package nic

import (
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// numberSet gives out the lowest free number.
type numberSet struct {
	first uint64   // a bit for each of the first 64 numbers, set: taken
	full  int      // words before this one have no free number
	more  []uint64 // the same bits for the other numbers
}

// word returns the bits of 64 numbers.
func (s *numberSet) word(w int) *uint64 {
	if w == 0 {
		return &s.first
	}
	return &s.more[w-1]
}

// take returns the lowest free number. If most is 0, there is no limit;
// otherwise it returns -1 if none of the first most numbers is free.
func (s *numberSet) take(most int) int {
	for ; s.full == 0 || s.full <= len(s.more); s.full++ {
		word := s.word(s.full)
		if free := ^*word; free != 0 {
			n := s.full*64 + bits.TrailingZeros64(free)
			if most > 0 && n >= most {
				return -1
			}
			*word |= free & -free
			return n
		}
	}
	if most > 0 && s.full*64 >= most {
		return -1
	}
	s.more = append(s.more, 1)
	return s.full * 64
}

// give takes a number back.
func (s *numberSet) give(n int) {
	*s.word(n / 64) &^= 1 << (n % 64)
	s.full = min(s.full, n/64)
}

// pieces is the memory for messages of entries: it notes which pieces are
// taken.
type pieces struct {
	portals.MessageMemory
	numberSet
}

// maxPieces is how many messages an entry may have memory for at once.
const maxPieces = 1 << 16

// aligned is the unit of memories of clusters and messages, bytes.
const aligned = 16

// piecesOf returns the pieces of an entry; nil: it has none.
func (h *Memory) piecesOf(s *portals.Spin) *pieces {
	for _, p := range h.pieces {
		if p.MessageMemory == s.PerMessage {
			return p
		}
	}
	return nil
}

// checkMemories checks an entry's memories for clusters and messages.
func (h *Memory) checkMemories(s *portals.Spin, clusters int) error {
	check := func(what string, offset, each, n uint64) error {
		if offset%aligned != 0 || each%aligned != 0 {
			return fmt.Errorf("%w: %s: %d bytes at offset %d, expected multiples of %d", ErrHandlers, what, each, offset, aligned)
		}
		if size := uint64(h.bytes); offset > size || n > 0 && each > (size-offset)/n {
			return fmt.Errorf("%w: %s: %d of %d bytes at offset %d do not fit in %d bytes of HPU memory", ErrHandlers, what, n, each, offset, size)
		}
		return nil
	}
	if err := check("scratchpads", s.Scratchpads.Offset, s.Scratchpads.Bytes, uint64(clusters)); err != nil {
		return err
	}
	m := &s.PerMessage
	switch {
	case *m == portals.MessageMemory{}:
		return nil
	case m.Bytes == 0 || m.Messages == 0 || m.Messages > maxPieces:
		return fmt.Errorf("%w: memory of messages: %d bytes for %d messages, expected some for 1 to %d", ErrHandlers, m.Bytes, m.Messages, maxPieces)
	case s.Handlers.Header == 0:
		return fmt.Errorf("%w: memory of messages without a header handler, which would initialise it", ErrHandlers)
	}
	return check("memory of messages", m.Offset, m.Bytes, uint64(m.Messages))
}

// provide notes the memory for messages of an entry that has been checked.
func (h *Memory) provide(s *portals.Spin) {
	if s.PerMessage.Messages > 0 && h.piecesOf(s) == nil {
		h.pieces = append(h.pieces, &pieces{MessageMemory: s.PerMessage})
	}
}

// memoryOf answers a handler's question about its message and its memories. The
// answer of scratchpad and message_memory has the address in the lower half and
// the bytes in the upper half. It is 0 if there is no such memory.
func (in *inbound) memoryOf(a *hpu.Action, clusters int) int64 {
	h, s := in.handlers.memory, in.d.Spin
	offset, n := uint64(0), uint64(0)
	switch a.Op {
	case hpu.OpFlowID:
		return int64(in.flow)
	case hpu.OpScratchpad:
		if a.A < uint64(max(1, clusters)) {
			offset, n = s.Scratchpads.Offset+a.A*s.Scratchpads.Bytes, s.Scratchpads.Bytes
		}
	case hpu.OpMessageMemory:
		offset, n = s.PerMessage.Offset+uint64(in.piece)*s.PerMessage.Bytes, s.PerMessage.Bytes
	}
	if n == 0 {
		return 0
	}
	return int64(uint64(h.addr) + offset | n<<32)
}

// admitted gives a message that handlers will see a number and a piece of
// memory; false: no piece is free.
func (s *schedule) admitted(in *inbound) bool {
	if h := in.handlers; h.pieces {
		p := h.memory.piecesOf(in.d.Spin)
		if in.piece = int32(p.take(int(p.Messages))); in.piece < 0 {
			return false
		}
	}
	in.flow = int32(s.flows.take(0))
	return true
}

// handled ends a message that handlers have seen.
func (e *env) handled(in *inbound) {
	h := in.handlers
	if in.underway == 0 {
		h.memory.uses--
	}
	if h.pieces {
		h.memory.piecesOf(in.d.Spin).give(int(in.piece))
	}
	e.flows.give(int(in.flow))
}
