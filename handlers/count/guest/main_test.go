package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/spin/spintest"
)

// The Go source, its module and the C source's module give the same counts.
func TestCount(t *testing.T) {
	names := wasmtest.Names{Payload: count.Payload, Completion: count.Completion}
	for name, handlers := range map[string]func(*spintest.Device) spintest.Handlers[count.State]{
		"native": func(*spintest.Device) spintest.Handlers[count.State] {
			return spintest.Handlers[count.State]{Payload: payload, Completion: completion}
		},
		"tinygo": func(d *spintest.Device) spintest.Handlers[count.State] {
			return wasmtest.Handlers[count.State](t, d, count.Library.Wasm, names, 0)
		},
		"c": func(d *spintest.Device) spintest.Handlers[count.State] {
			return wasmtest.Handlers[count.State](t, d, count.LibraryC.Wasm, names, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := spintest.New(t, spintest.Config{MTU: 1024})
			h := handlers(d)
			var s count.State
			out := spintest.Deliver(d, h, &s, spintest.Message{Data: make([]byte, 2500)})
			require.Empty(t, out.Traps)
			spintest.Deliver(d, h, &s, spintest.Message{})
			spintest.Deliver(d, h, &s, spintest.Message{Data: make([]byte, 2048), Lost: []int{0}})
			require.Equal(t, count.State{Messages: 3, Packets: 4, Bytes: 3524, Dropped: 1024}, s)
		})
	}
}
