//go:build !tinygo

package count

import _ "embed"

//go:generate go run ../../internal/build/cmd -o count.wasm guest
//go:generate go run ../../internal/build/cmd -o count_c.wasm c

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed count.wasm
var Module []byte

// ModuleC is the same library, compiled from the C source in c.
//
//go:embed count_c.wasm
var ModuleC []byte

// Names of the handlers in Module and ModuleC.
const (
	Payload    = "payload"
	Completion = "completion"
)
