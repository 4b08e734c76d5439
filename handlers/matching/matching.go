//go:build !tinygo

package matching

import _ "embed"

//go:generate go run ../../internal/build/cmd -o matching.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed matching.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Header  = "header"
	Payload = "payload"
)
