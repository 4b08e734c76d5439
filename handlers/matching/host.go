//go:build !tinygo

package matching

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o matching.wasm guest

//go:embed matching.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("matching", wasm)

// ReceiverSlot is handlers that fetch the rest of a large message when it
// matches.
var ReceiverSlot = Library.Slot(handlers.Slot{
	Name:     "receiver",
	Short:    "handlers that fetch the data of a large message when a receive matches its announcement",
	Handlers: []string{Header, Payload},
	Expects: []string{
		"Small messages take the default action.",
		"For an announcement (AnnouncementSize bytes, then the first part of the data) the rest is fetched by a get from portal table index pt of the sender.",
	},
})

// Names of its handlers.
const (
	Header  = "header"
	Payload = "payload"
)
