//go:build !tinygo

package rdma

import _ "embed"

//go:generate go run ../../internal/build/cmd -o rdma.wasm guest

// Module is the handler library, compiled from the Go source in guest and engine.
//
//go:embed rdma.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Control = "control" // header handler of PTControl
	Cells   = "cells"   // payload handler of PTCells
)
