//go:build !tinygo

package sum

import _ "embed"

//go:generate go run ../../internal/build/cmd -o sum.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed sum.wasm
var Module []byte

// Payload is the name of the handler in Module.
const Payload = "payload"
