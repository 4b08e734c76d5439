package hpu

import (
	"bytes"
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

// TestStackNeed has what a function does with the stack pointer. Its need has a
// bound only if it makes frames as compilers do, and gives them back.
func TestStackNeed(t *testing.T) {
	get, set := []byte{byte(wasm.OpGlobalGet), 0}, []byte{byte(wasm.OpGlobalSet), 0}
	number := func(n int64) []byte { return wasm.AppendS64([]byte{byte(wasm.OpI32Const)}, n) }
	sub, add, tee, local := []byte{byte(wasm.OpI32Sub)}, []byte{byte(wasm.OpI32Add)}, []byte{byte(wasm.OpLocalTee), 2}, []byte{byte(wasm.OpLocalGet), 2}
	drop, keep := []byte{byte(wasm.OpDrop)}, []byte{byte(wasm.OpLocalSet), 2}
	release := bytes.Join([][]byte{local, number(48), add, set}, nil)
	for _, x := range []struct {
		name  string
		code  [][]byte
		bytes int64 // -1: no bound
	}{
		{"nothing", nil, 0},
		{"leaf", [][]byte{get, number(48), sub, keep}, 48},
		{"function", [][]byte{get, number(48), sub, tee, set, release}, 48},
		{"frame in a frame", [][]byte{get, number(48), sub, tee, set, get, number(16), sub, tee, set, local, number(16), add, set, release}, 64},
		{"kept", [][]byte{get, number(48), sub, tee, set}, -1},
		{"released only", [][]byte{release}, -1},
		{"grows upwards", [][]byte{get, number(-48), sub, keep}, -1},
		{"sum", [][]byte{get, number(-48), add, tee, set, release}, -1},
		{"computed", [][]byte{get, local, sub, tee, set, release}, -1},
		{"grown", [][]byte{get, number(48), sub, tee, set, local, number(16), sub, set, release}, -1},
		{"pointer in a local", [][]byte{get, keep, local, number(48), sub, set, release}, -1},
		{"pointer dropped", [][]byte{get, drop}, -1},
		{"any address", [][]byte{get, number(48), sub, tee, set, number(4096), set, release}, -1},
		{"released downwards", [][]byte{get, number(48), sub, tee, set, local, number(-48), add, set}, -1},
	} {
		m := handlerModule()
		m.bodies[0] = append(append([]byte{1, 1, byte(wasm.I32)}, bytes.Join(x.code, nil)...), number(0)...)
		m.globals = append(wasm.AppendS64([]byte{1, byte(wasm.I32), 1, byte(wasm.OpI32Const)}, 65536), byte(wasm.OpEnd))
		loaded, err := Load("m", m.bytes(), testSpec())
		require.NoError(t, err, x.name)
		n, bounded := loaded.Stack(loaded.Exports()[0])
		if !bounded {
			n = -1
		}
		require.Equal(t, x.bytes, n, x.name)
		l, err := loaded.Layout(40)
		require.NoError(t, err)
		if n < 0 {
			n = 512 // of the device
		}
		require.Equal(t, uint32(n), l.StackBytes, x.name)
	}
}

// TestContextsLieApart has a stack in the block and one outside: no byte belongs
// to two contexts, nor to one and the memory below, and Where knows all.
func TestContextsLieApart(t *testing.T) {
	for _, need := range []int64{-1, 0, 100, 512, 513} {
		l, err := layoutOf(65536, 40, testSpec(), need)
		require.NoError(t, err)
		owner := map[uint32]string{}
		for i := range l.Contexts {
			for _, x := range []struct {
				part     string
				at, size uint32
			}{
				{"record", l.Args(i), recordBytes},
				{"packet", l.Packet(i, ShortPacket), ShortPacket},
				{"packet", l.Packet(i, ShortPacket+1), l.PacketBytes},
				{"stack", l.StackLimit(i), l.StackBytes},
			} {
				require.Zero(t, x.at%16)
				require.GreaterOrEqual(t, x.at, l.Base)
				for k := range x.size {
					require.Empty(t, owner[x.at+k], "%d", x.at+k)
					owner[x.at+k] = x.part
					part, offset := l.Where(x.at + k)
					require.Equal(t, x.part, part)
					require.Equal(t, k, offset)
				}
			}
			require.Equal(t, l.StackLimit(i)+l.StackBytes, l.StackTop(i))
			require.LessOrEqual(t, l.StackTop(i)+operandBytes, l.Total)
			require.LessOrEqual(t, l.Packet(i, 1024)+1024+operandBytes, l.Total)
		}
		for at := range l.Total {
			part, _ := l.Where(at)
			require.Equal(t, owner[at], part, "%d", at)
		}
		require.Equal(t, need >= 0 && need <= 512, l.StackLimit(l.Contexts-1) < l.Packets)
	}
}
