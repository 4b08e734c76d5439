//go:build !tinygo

package rdma

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o rdma.wasm guest

//go:embed rdma.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest and engine.
var Library = handlers.Register("rdma", wasm)

// Names of its handlers.
const (
	Control = "control" // header handler of PTControl
	Cells   = "cells"   // payload handler of PTCells
)
