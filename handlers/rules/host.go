//go:build !tinygo

package rules

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o rules.wasm guest

//go:embed rules.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("rules", wasm)

// Names of its handlers.
const (
	Header     = "header"
	Payload    = "payload"
	Completion = "completion"
)
