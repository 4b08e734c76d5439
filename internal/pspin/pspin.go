// Package pspin has handlers like those that PsPIN's repository publishes as
// examples (spcl/pspin, examples): they compute the same, in our words, over the
// header that lets PsPIN's own compile (docs/porting.md).
package pspin

import (
	_ "embed"

	"github.com/spinsim/spinsim/handlers"
)

//go:generate go run ../build/cmd -o empty.wasm empty
//go:generate go run ../build/cmd -o ping_pong.wasm ping_pong
//go:generate go run ../build/cmd -o copy_to_host.wasm copy_to_host
//go:generate go run ../build/cmd -o filtering.wasm filtering
//go:generate go run ../build/cmd -o aggregate.wasm aggregate

var (
	//go:embed empty.wasm
	empty []byte
	//go:embed ping_pong.wasm
	pingPong []byte
	//go:embed copy_to_host.wasm
	copyToHost []byte
	//go:embed filtering.wasm
	filtering []byte
	//go:embed aggregate.wasm
	aggregate []byte
)

// Names are the names of the handlers, as PsPIN has them.
func Names() []string {
	return []string{"empty", "ping_pong", "copy_to_host", "filtering", "aggregate"}
}

// Library returns the handler with one of Names.
func Library(name string) *handlers.Library {
	modules := map[string][]byte{"empty": empty, "ping_pong": pingPong, "copy_to_host": copyToHost, "filtering": filtering, "aggregate": aggregate}
	return handlers.New(name, modules[name])
}
