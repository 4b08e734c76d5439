//go:build !tinygo

package mailbox

import _ "embed"

//go:generate go run ../../internal/build/cmd -o mailbox.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed mailbox.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Packetizer = "packetizer" // header handler of the packetizer's entry
	Mailbox    = "mailbox"    // payload handler of the mailbox's entry
)
