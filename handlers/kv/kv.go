//go:build !tinygo

package kv

import _ "embed"

//go:generate go run ../../internal/build/cmd -o kv.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed kv.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Header     = "header"
	Payload    = "payload"
	Completion = "completion"
)

// MaxBuffers is the largest number of buffers, and so of handlers that run at a time.
const MaxBuffers = 64
