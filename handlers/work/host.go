//go:build !tinygo

package work

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o work.wasm guest

//go:embed work.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("work", wasm)

// Payload is the name of its handler.
const Payload = "payload"
