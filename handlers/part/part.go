//go:build !tinygo

package part

import _ "embed"

//go:generate go run ../../internal/build/cmd -o part.wasm guest

// Module is the handler library, compiled from the Go source in guest and the engine of package rdma.
//
//go:embed part.wasm
var Module []byte
