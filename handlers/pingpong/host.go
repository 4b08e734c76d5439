//go:build !tinygo

package pingpong

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o pingpong.wasm guest

//go:embed pingpong.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("pingpong", wasm)

// Names of its handlers.
const (
	StorePayload     = "store_payload"
	StoreCompletion  = "store_completion"
	StreamPayload    = "stream_payload"
	StreamCompletion = "stream_completion"
)
