//go:build !tinygo

package kv

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o kv.wasm guest

//go:embed kv.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("kv", wasm)

// Names of its handlers.
const (
	Header     = "header"
	Payload    = "payload"
	Completion = "completion"
)

// MaxBuffers is the largest number of buffers, and so of handlers that run at a time.
const MaxBuffers = 64
