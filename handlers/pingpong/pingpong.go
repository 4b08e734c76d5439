//go:build !tinygo

package pingpong

import _ "embed"

//go:generate go run ../../internal/build/cmd -o pingpong.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed pingpong.wasm
var Module []byte

// Names of the handlers in Module.
const (
	StorePayload     = "store_payload"
	StoreCompletion  = "store_completion"
	StreamPayload    = "stream_payload"
	StreamCompletion = "stream_completion"
)
