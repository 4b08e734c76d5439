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

// Names of its handlers.
const (
	Packetizer = "packetizer" // header handler of the packetizer's entry
	Mailbox    = "mailbox"    // payload handler of the mailbox's entry
)
