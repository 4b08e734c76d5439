//go:build !tinygo

package bcast

import _ "embed"

//go:generate go run ../../internal/build/cmd -o bcast.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed bcast.wasm
var Module []byte

// Names of the handlers in Module.
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
