//go:build !tinygo

package sum

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o sum.wasm guest

//go:embed sum.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("sum", wasm)

// TargetSlot is a payload handler that adds bytes.
var TargetSlot = Library.Slot(handlers.Slot{
	Name: "target", Short: "a payload handler that adds bytes",
	Handlers: []string{Payload},
	More:     true,
	Fields:   []string{},
	Expects: []string{
		"Every message is deposited in the entry's memory.",
	},
})

// Payload is the name of its handler.
const Payload = "payload"
