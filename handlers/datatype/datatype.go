//go:build !tinygo

package datatype

import _ "embed"

//go:generate go run ../../internal/build/cmd -o datatype.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed datatype.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Unpack = "unpack" // payload
	Pack   = "pack"   // header
)
