//go:build !tinygo

package backupring

import _ "embed"

//go:generate go run ../../internal/build/cmd -o backupring.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed backupring.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Receive = "receive" // payload: frames
	Control = "control" // header
)
