//go:build !tinygo

package pingpong

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o pingpong.wasm guest

//go:embed pingpong.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("pingpong", wasm)

// StoreSlot is the side of a ping-pong that answers when the message is there.
var StoreSlot = Library.Slot(handlers.Slot{
	Name: "store", Short: "the side of a ping-pong that answers when the message is there",
	Handlers: []string{StorePayload, StoreCompletion},
	Optional: []string{StorePayload},
	More:     true,
	Fields:   []string{"match_bits", "pt"},
	May:      []string{"max_payload"},
	Expects: []string{
		"The answer has the bytes of the message and goes to its sender, to portal table index pt with match_bits.",
	},
})

// StreamSlot is the side of a ping-pong that answers each packet.
var StreamSlot = Library.Slot(handlers.Slot{
	Name: "stream", Short: "the side of a ping-pong that answers each packet",
	Handlers: []string{StreamPayload, StreamCompletion},
	Optional: []string{StreamCompletion},
	More:     true,
	Fields:   []string{"match_bits", "pt"},
	May:      []string{"max_payload"},
	Expects: []string{
		"Each packet goes back to its sender, to its place in the message, to portal table index pt with match_bits.",
	},
})

// Names of its handlers.
const (
	StorePayload     = "store_payload"
	StoreCompletion  = "store_completion"
	StreamPayload    = "stream_payload"
	StreamCompletion = "stream_completion"
)
