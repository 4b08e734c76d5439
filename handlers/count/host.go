//go:build !tinygo

package count

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o count.wasm guest
//go:generate go run ../../internal/build/cmd -o count_c.wasm c

//go:embed count.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("count", wasm)

// TargetSlot is handlers that count what arrives.
var TargetSlot = Library.Slot(handlers.Slot{
	Name: "target", Short: "handlers that count what arrives",
	Handlers: []string{Payload, Completion},
	Optional: []string{Completion},
	More:     true,
	Fields:   []string{"messages", "packets", "bytes"},
	Expects: []string{
		"The host reads how many messages, packets and bytes have come. Nothing is deposited.",
	},
})

//go:embed count_c.wasm
var wasmC []byte

// LibraryC is the same library, compiled from the C source in c.
var LibraryC = handlers.Register("count_c", wasmC)

// Names of the handlers of both libraries.
const (
	Payload    = "payload"
	Completion = "completion"
)
