//go:build !tinygo

package rules

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o rules.wasm guest

//go:embed rules.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("rules", wasm)

// TargetSlot is handlers that take one action each.
var TargetSlot = Library.Slot(handlers.Slot{
	Name: "target", Short: "handlers that take one action each",
	Handlers: []string{Header, Payload, Completion},
	Fields:   []string{"header", "action", "puts", "length", "pt", "match_bits"},
	Expects: []string{
		"The header handler returns header; the payload handler takes action.",
	},
})

// Names of its handlers.
const (
	Header     = "header"
	Payload    = "payload"
	Completion = "completion"
)
