//go:build !tinygo

package replicate

import _ "embed"

//go:generate go run ../../internal/build/cmd -o replicate.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed replicate.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Open  = "open"  // header, of a write
	Store = "store" // payload
	Admit = "admit" // header, of a write to servers that are guarded
	Send  = "fetch" // header, of a read from them
)
