//go:build !tinygo

package matching

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o matching.wasm guest

//go:embed matching.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("matching", wasm)

// Names of its handlers.
const (
	Header  = "header"
	Payload = "payload"
)
