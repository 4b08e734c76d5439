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
		"An announcement has bit 63 of hdr_data; all other messages take the default action (PROCEED).",
		"The user header of an announcement is total, u64 (bytes of the data), and tag, u64; the first part of the data is its payload.",
		"The rest is fetched by a get from portal table index pt of the sender, match bits tag, to the entry, where it begins at the same offset as at the sender.",
		"The entry is complete when both are there: the get has COMPLETE_ENTRY, the header handler returns PROCESS_DATA_PENDING.",
	},
})

// Names of its handlers.
const (
	Header  = "header"
	Payload = "payload"
)
