//go:build !tinygo

package scan

import _ "embed"

//go:generate go run ../../internal/build/cmd -o scan.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed scan.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Worker  = "worker"  // header
	Request = "request" // payload
)

// MaxBuffers is the largest number of buffers, and so of handlers that run at a time.
const MaxBuffers = 64
