//go:build !tinygo

package scan

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o scan.wasm guest

//go:embed scan.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("scan", wasm)

// Names of its handlers.
const (
	Worker  = "worker"  // header
	Request = "request" // payload
)

// MaxBuffers is the largest number of buffers, and so of handlers that run at a time.
const MaxBuffers = 64
