//go:build !tinygo

package work

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o work.wasm guest

//go:embed work.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("work", wasm)

// TargetSlot is a payload handler whose time is measured.
var TargetSlot = Library.Slot(handlers.Slot{
	Name: "target", Short: "a payload handler whose time is measured",
	Handlers: []string{Payload},
	Fields:   []string{},
	May:      []string{"iterations"},
	Expects: []string{
		"The handler of each packet takes the same time; iterations, if there is such a number, lengthens it.",
	},
})

// Payload is the name of its handler.
const Payload = "payload"
