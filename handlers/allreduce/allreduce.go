//go:build !tinygo

package allreduce

import _ "embed"

//go:generate go run ../../internal/build/cmd -o allreduce.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed allreduce.wasm
var Module []byte

// Handler is the name of the handler in Module.
const Handler = "module"
