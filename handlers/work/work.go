//go:build !tinygo

package work

import _ "embed"

//go:generate go run ../../internal/build/cmd -o work.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed work.wasm
var Module []byte

// Payload is the name of the handler in Module.
const Payload = "payload"
