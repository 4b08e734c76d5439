//go:build !tinygo

package part

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o part.wasm guest

//go:embed part.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest and the
// engine of package rdma.
var Library = handlers.Register("part", wasm)
