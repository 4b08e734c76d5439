//go:build !tinygo

package txlog

import _ "embed"

//go:generate go run ../../internal/build/cmd -o txlog.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed txlog.wasm
var Module []byte

// Names of the handlers in Module: of the same entry.
const (
	Header     = "log_header"
	Completion = "log_completion"
)
