package hpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// TestFrames has handlers with frames on the shadow stack as compilers make
// them: a function that calls none does not store the pointer, and its frame is
// checked nonetheless. Nothing behind the stack is touched.
func TestFrames(t *testing.T) {
	for _, x := range []struct {
		name  string
		store bool
		bytes int64
		ends  TrapKind
	}{
		{"leaf that fits", false, 512, TrapNone},
		{"leaf", false, 516, TrapStackOverflow},
		{"function that fits", true, 512, TrapNone},
		{"function", true, 516, TrapStackOverflow},
	} {
		code := append([]byte{1, 1, byte(wasm.I32)}, wasm.AppendS64([]byte{byte(wasm.OpGlobalGet), 0, byte(wasm.OpI32Const)}, x.bytes)...)
		code = append(code, byte(wasm.OpI32Sub), byte(wasm.OpLocalTee), 2)
		if x.store {
			code = append(code, byte(wasm.OpGlobalSet), 0)
		} else {
			code = append(code, byte(wasm.OpDrop))
		}
		code = append(code, byte(wasm.OpLocalGet), 2, byte(wasm.OpI32Const), 7, 0x36, 2, 0, byte(wasm.OpI32Const), 3)
		m := handlerModule()
		m.bodies[0] = code
		m.globals = append(wasm.AppendS64([]byte{1, byte(wasm.I32), 1, byte(wasm.OpI32Const)}, 65536), byte(wasm.OpEnd))
		onEngines(t, func(t *testing.T, e Engine) {
			p := programOn(t, e, m.bytes(), testSpec(), answering)
			c := p.Context(1)
			l := p.Layout()
			before := append([]byte(nil), p.Memory()[:l.StackLimit(1)]...)
			out := end(t, c, "h", 0, 0, 1e6)
			require.Equal(t, before, p.Memory()[:l.StackLimit(1)], x.name)
			if x.ends == TrapNone {
				require.Nil(t, out.Err, x.name)
				require.Equal(t, byte(7), p.Memory()[l.StackLimit(1)])
				return
			}
			require.Equal(t, x.ends, out.Err.Kind, x.name)
			require.Equal(t, Segv, out.Code)
		})
	}
}
