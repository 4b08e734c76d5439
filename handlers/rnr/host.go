//go:build !tinygo

package rnr

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o rnr.wasm guest

//go:embed rnr.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("rnr", wasm)

// Names of its handlers.
const (
	Hardware = "hardware" // payload: packets, work requests, timers
	Firmware = "firmware" // header: page faults
)
