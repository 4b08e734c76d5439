//go:build !tinygo

package raid5

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o raid5.wasm guest

//go:embed raid5.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("raid5", wasm)

// Names of its handlers.
const (
	Open   = "open"   // header, of a write
	Write  = "write"  // payload
	Apply  = "apply"  // payload, of a difference
	Done   = "done"   // header
	Gather = "gather" // header
	Fold   = "fold"   // payload
	Fill   = "fill"   // payload

	// With several parity servers these stand for Write, Gather and Fold.
	Encode  = "encode"  // payload, of a write
	Collect = "collect" // header
	Blend   = "blend"   // payload
)
