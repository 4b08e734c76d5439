//go:build !tinygo

package allreduce

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o allreduce.wasm guest

//go:embed allreduce.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("allreduce", wasm)

// Handler is the name of its handler.
const Handler = "module"
