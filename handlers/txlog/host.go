//go:build !tinygo

package txlog

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o txlog.wasm guest

//go:embed txlog.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("txlog", wasm)

// Names of its handlers: of the same entry.
const (
	Header     = "log_header"
	Completion = "log_completion"
)
