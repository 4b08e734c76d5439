// Package histogram is a handler in C that counts bytes in memories of
// clusters. The host configures it while messages arrive. Its source is in the
// folder histogram.
package histogram

import _ "embed"

//go:generate go run ../../internal/build/cmd -o histogram.wasm histogram

// Module is the compiled handler.
//
//go:embed histogram.wasm
var Module []byte
