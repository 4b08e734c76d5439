//go:build !tinygo

package backupring

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../../internal/build/cmd -o backupring.wasm guest

//go:embed backupring.wasm
var wasm []byte

// Library is the handler library, compiled from the Go source in guest.
var Library = handlers.Register("backupring", wasm)

// Names of its handlers.
const (
	Receive = "receive" // payload: frames
	Control = "control" // header
)
