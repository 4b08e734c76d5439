//go:build !tinygo

package ftbcast

import _ "embed"

//go:generate go run ../../internal/build/cmd -o ftbcast.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed ftbcast.wasm
var Module []byte

// Names of the handlers in Module: the one for broadcasts with a payload, the other for those without.
const (
	Payload = "first_payload"
	Header  = "first_header"
)
