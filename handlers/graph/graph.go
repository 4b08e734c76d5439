//go:build !tinygo

package graph

import _ "embed"

//go:generate go run ../../internal/build/cmd -o graph.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed graph.wasm
var Module []byte

// Names of the handlers in Module, of two entries.
const (
	UpdateHandler  = "graph_update"
	ControlHandler = "graph_control"
)
