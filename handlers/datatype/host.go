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

// UnpackSlot is a payload handler that unpacks a message into the elements of a type.
var UnpackSlot = Library.Slot(handlers.Slot{
	Name: "unpack", Short: "a payload handler that unpacks a message into the elements of a type",
	Handlers: []string{Unpack},
	Expects: []string{
		"The host compiles the type into the state and what lies behind it (Compile): a tree of Node and Entry (state.go), but for strategy Vector.",
		"A packet's bytes are at the elements' places when its handler has ended; packets come in any order.",
	},
})

// PackSlot is a header handler that sends the elements of a type as a message.
var PackSlot = Library.Slot(handlers.Slot{
	Name: "pack", Short: "a header handler that sends the elements of a type as a message",
	Handlers: []string{Pack},
	Expects: []string{
		"The host compiles the type into the state and what lies behind it (Compile).",
		"An empty message of the own process begins the packing.",
	},
})

// Names of its handlers.
const (
	Unpack = "unpack" // payload
	Pack   = "pack"   // header
)
