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
