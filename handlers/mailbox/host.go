//go:build !tinygo

package mailbox

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o mailbox.wasm guest

//go:embed mailbox.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("mailbox", wasm)

// EngineSlot is packetizer and mailbox: acknowledged messages of up to 64 B.
var EngineSlot = Library.Slot(handlers.Slot{
	Name: "engine", Short: "packetizer and mailbox: acknowledged messages of up to 64 B",
	Handlers: []string{Packetizer, Mailbox},
	Expects: []string{
		"A launch of the process brings the payload as its user header, and Destination in its header data.",
		"A message is in the queue of its mailbox before its ACK goes, and is delivered once.",
		"A channel's status changes when the ACK or NACK is there, or at its time-out.",
	},
})

// Names of its handlers.
const (
	Packetizer = "packetizer" // header handler of the packetizer's entry
	Mailbox    = "mailbox"    // payload handler of the mailbox's entry
)
