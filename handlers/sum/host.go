//go:build !tinygo

package sum

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o sum.wasm guest

//go:embed sum.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("sum", wasm)

// Payload is the name of its handler.
const Payload = "payload"
