//go:build !tinygo

package graph

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o graph.wasm guest

//go:embed graph.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("graph", wasm)

// Names of its handlers, of two entries.
const (
	UpdateHandler  = "graph_update"
	ControlHandler = "graph_control"
)
