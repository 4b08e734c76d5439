//go:build !tinygo

package replicate

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o replicate.wasm guest

//go:embed replicate.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("replicate", wasm)

// Names of its handlers.
const (
	Open  = "open"  // header, of a write
	Store = "store" // payload
	Admit = "admit" // header, of a write to servers that are guarded
	Send  = "fetch" // header, of a read from them
)
