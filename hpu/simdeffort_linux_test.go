//go:build !race

package hpu

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// TestEffortOfVectors holds the loader to its promise for what takes wazero the
// most of all instructions on vectors: as many as the loader accepts, or as fit.
// One more of those that it counts is refused.
func TestEffortOfVectors(t *testing.T) {
	const most = 40_000
	var slow slowness
	for name, counted := range map[string]bool{"i8x16.popcnt": true, "f32x4.min": true, "f64x2.max": true, "i32x4.trunc_sat_f32x4_u": false} {
		op, _ := wasm.OpcodeByName(name)
		made := func(n int) []byte {
			b := wasm.AppendIndexed(wasm.AppendIndexed([]byte{1, 1, byte(wasm.V128)}, wasm.OpLocalGet, 0), wasm.OpLocalGet, 2)
			for range n {
				if op.Info().Sig == "vv:v" {
					b = wasm.AppendIndexed(b, wasm.OpLocalGet, 2)
				}
				b = appendOp(b, op)
			}
			m := handlerModule()
			m.bodies[0] = append(appendOp(b, 0xFD0B), 0, 0, byte(wasm.OpI32Const), 0)
			return m.bytes()
		}
		n := 2 * most
		if counted {
			n = most
			_, err := Load("m", made(n+1), effortSpec())
			require.EqualError(t, err, "module m, function h: too much to compile: "+
				"the module has 40001 minima, maxima and bit counts of vectors, at most 40000; 40001 of them here", name)
		}
		e := measure(t, t.TempDir(), made(n))
		for range 4 { // others disturb
			if e.share() < 1 {
				break
			}
			again, by := measure(t, t.TempDir(), made(n)), slow.measure(t)
			again.Time = time.Duration(float64(again.Time) / by)
			e = effort{min(e.Time, again.Time), min(e.Memory, again.Memory)}
		}
		t.Logf("%v: %d of %s", e, n, name)
		require.Less(t, e.share(), 1.0, name)
	}
}
