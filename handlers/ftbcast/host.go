//go:build !tinygo

package ftbcast

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o ftbcast.wasm guest

//go:embed ftbcast.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("ftbcast", wasm)

// Names of its handlers: the one for broadcasts with a payload, the other for those without.
const (
	Payload = "first_payload"
	Header  = "first_header"
)
