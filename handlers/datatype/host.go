//go:build !tinygo

package datatype

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o datatype.wasm guest

//go:embed datatype.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("datatype", wasm)

// Names of its handlers.
const (
	Unpack = "unpack" // payload
	Pack   = "pack"   // header
)
