package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// Lengths around the unrolled loop's stride matter: the compiler treats the rest apart.
func TestSum(t *testing.T) {
	d := spintest.New(t, spintest.Config{HPUs: sum.MaxHPUs + 2})
	wasm := wasmtest.Handlers[sum.State](t, d, sum.Library.Wasm, wasmtest.Names{Payload: sum.Payload}, 0)
	native := spintest.Handlers[sum.State]{Payload: payload}
	rapid.Check(t, func(r *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(r, "data")
		var want uint64
		for _, b := range data {
			want += uint64(b)
		}
		d.HPU = rapid.IntRange(0, sum.MaxHPUs+1).Draw(r, "hpu")
		hpu := d.HPU
		for _, h := range []spintest.Handlers[sum.State]{native, wasm} {
			d.HPU = hpu
			var s sum.State
			out := spintest.Deliver(d, h, &s, spintest.Message{Data: data})
			require.Equal(t, []spin.Code{spin.Success}, out.Payloads)
			require.Equal(t, want, s.Total())
			require.Equal(t, want, s.Sums[d.HPU%sum.MaxHPUs], "in the sum of the HPU it ran on")
		}
	})
	for _, name := range d.Names() {
		require.Equal(t, "my_hpu", name, "no action that may suspend")
	}
}
