//go:build !tinygo

package raid5

import _ "embed"

//go:generate go run ../../internal/build/cmd -o raid5.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed raid5.wasm
var Module []byte

// Names of the handlers in Module.
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
