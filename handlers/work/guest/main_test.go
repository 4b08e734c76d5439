package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/spin/spintest"
)

// The result proves that every iteration was made.
func TestWork(t *testing.T) {
	d := spintest.New(t, spintest.Config{HPUs: 2, MTU: 64})
	for name, h := range map[string]spintest.Handlers[work.State]{
		"native": {Payload: payload},
		"tinygo": wasmtest.Handlers[work.State](t, d, work.Library.Wasm, wasmtest.Names{Payload: work.Payload}, 0),
	} {
		t.Run(name, func(t *testing.T) {
			d.HPU = 0
			for _, n := range []uint64{0, 1, 1000} {
				s := work.State{Iterations: n}
				out := spintest.Deliver(d, h, &s, spintest.Message{Data: make([]byte, 128)})
				require.Empty(t, out.Traps)
				want := [2]uint64{}
				for packet := range want {
					x := work.Seed(uint64(packet) * 64)
					for range n {
						x = work.Step(x)
					}
					want[packet] = x
				}
				// The first of two packets runs on HPU 1, the second on HPU 0.
				require.Equal(t, want, [2]uint64{s.Results[1], s.Results[0]})
			}
		})
	}
}
