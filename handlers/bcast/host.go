//go:build !tinygo

package bcast

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o bcast.wasm guest

//go:embed bcast.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("bcast", wasm)

// StoreSlot is a rank of a broadcast that passes a message on when all of it is there.
var StoreSlot = Library.Slot(handlers.Slot{
	Name: "store", Short: "a rank of a broadcast that passes a message on when all of it is there",
	Handlers: []string{StorePayload, StoreCompletion},
	Optional: []string{StorePayload},
	More:     true,
	Fields:   []string{"match_bits", "pt", "rank", "ranks", "root"},
	May:      []string{"max_payload"},
	Expects: []string{
		"The entry's memory is the rank's buffer: the whole message is in it at the end.",
		"Counted from the root, rank r has the children r + d for the powers of two d below its lowest bit (State.Child); the root's host serves its own.",
		"The message goes to each child once, to its offset in the entry, to portal table index pt with match_bits.",
	},
})

// StreamSlot is a rank of a broadcast that passes each packet on when it arrives.
var StreamSlot = Library.Slot(handlers.Slot{
	Name: "stream", Short: "a rank of a broadcast that passes each packet on when it arrives",
	Handlers: []string{StreamPayload, StreamCompletion},
	Optional: []string{StreamCompletion},
	More:     true,
	Fields:   []string{"match_bits", "pt", "rank", "ranks", "root"},
	May:      []string{"max_payload"},
	Expects: []string{
		"The entry's memory is the rank's buffer: the whole message is in it at the end.",
		"Counted from the root, rank r has the children r + d for the powers of two d below its lowest bit (State.Child); the root's host serves its own.",
		"Each packet goes to each child once, to its place in the entry (host_offset), to portal table index pt with match_bits.",
	},
})

// Names of its handlers.
const (
	StorePayload     = "store_payload"
	StoreCompletion  = "store_completion"
	StreamPayload    = "stream_payload"
	StreamCompletion = "stream_completion"
)

// Children returns the ranks to which this rank forwards, in order.
func (s *State) Children() []uint32 {
	var ranks []uint32
	for d := s.FirstDistance(); d > 0; d >>= 1 {
		if rank, found := s.Child(d); found {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
