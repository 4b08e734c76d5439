//go:build !tinygo

package rnr

import _ "embed"

//go:generate go run ../../internal/build/cmd -o rnr.wasm guest

// Module is the handler library, compiled from the Go source in guest.
//
//go:embed rnr.wasm
var Module []byte

// Names of the handlers in Module.
const (
	Hardware = "hardware" // payload: packets, work requests, timers
	Firmware = "firmware" // header: page faults
)
