// Package chandler is the filter of examples/first-handler in C. Its source is
// in the folder filter.
package chandler

import _ "embed"

//go:generate go run ../../internal/build/cmd -o filter.wasm filter

// Module is the compiled handler.
//
//go:embed filter.wasm
var Module []byte
