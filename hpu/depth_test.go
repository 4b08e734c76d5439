package hpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// deepShapes are functions that call themselves without end, with as much on an
// engine's stack as their code allows: values that live at once, or one after
// the other, locals, and arguments.
func deepShapes() map[string]*moduleOf {
	get := func(b []byte, l int) []byte { return wasm.AppendIndexed(b, wasm.OpLocalGet, uint32(l)) }
	load := func(b []byte, at int) []byte { // a value that is not known before
		b = wasm.AppendS64(append(b, byte(wasm.OpI32Const)), 0)
		return wasm.AppendU32(append(b, 0x29, 0), uint32(at%60_000))
	}
	call := func(b []byte) []byte { return append(get(get(b, 0), 1), byte(wasm.OpCall), 0) }
	shapes := make(map[string]*moduleOf)
	for name, n := range map[string]int{"few operands": 3, "operands": 500, "most operands": 4000} {
		var b []byte
		for i := range n {
			b = load(b, 8*i)
		}
		b = append(call(b), 0xAC) // i64.extend_i32_s
		for range n {
			b = append(b, 0x7C)
		}
		shapes[name] = handlerModule(append(b, 0xA7)...)
	}
	for name, n := range map[string]int{"locals": 100, "many locals": 4000} {
		m := handlerModule()
		b := append(wasm.AppendU32([]byte{1}, uint32(n)), byte(wasm.I64))
		for i := range n {
			b = wasm.AppendIndexed(load(b, 8*i), wasm.OpLocalSet, uint32(2+i))
		}
		b = append(call(b), 0xAC)
		for i := range n {
			b = append(get(b, 2+i), 0x7C)
		}
		m.bodies[0] = append(b, 0xA7)
		shapes[name] = m
	}
	for name, n := range map[string]int{"one after the other": 300, "very many, one after the other": 8000} {
		b := []byte{byte(wasm.OpI64Const), 0}
		for i := range n {
			b = append(load(b, 8*i), byte(wasm.OpCall), 1, 0x7C) // lives across a call that does nothing
		}
		m := handlerModule(append(call(append(b, 0xA7)), byte(wasm.OpI32Add))...)
		m.types = append(m.types, wasm.FuncType{})
		m.funcs, m.bodies = append(m.funcs, 1), append(m.bodies, []byte{0})
		shapes[name] = m
	}
	many := wasm.FuncType{Params: slices.Repeat([]wasm.ValueType{wasm.I64}, 64)}
	var b []byte
	for range 64 {
		b = load(b, 8)
	}
	m := handlerModule(append(append(b, byte(wasm.OpCall), 1), byte(wasm.OpI32Const), 0)...)
	m.types = append(m.types, many)
	b = []byte{0}
	for i := range 64 {
		b = get(b, 63-i)
	}
	m.funcs, m.bodies = append(m.funcs, 1), append(m.bodies, append(b, byte(wasm.OpCall), 1))
	shapes["arguments"] = m
	shapes["vectors"] = deepVectors(1000)
	return shapes
}

// deepVectors has n vectors live across each call of itself.
func deepVectors(n int) *moduleOf {
	b := append(wasm.AppendU32([]byte{1}, uint32(n)), byte(wasm.V128))
	for i := range n {
		b = append(wasm.AppendVector(append(b, byte(wasm.OpI32Const), 0), 0xFD00), 0)
		b = wasm.AppendIndexed(wasm.AppendU32(b, uint32(16*i)), wasm.OpLocalSet, uint32(2+i))
	}
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalGet, 0), wasm.OpLocalGet, 1)
	b = wasm.AppendVector(append(b, byte(wasm.OpCall), 0), 0xFD11) // i32x4.splat
	for i := range n {
		b = wasm.AppendVector(wasm.AppendIndexed(b, wasm.OpLocalGet, uint32(2+i)), 0xFDAE) // i32x4.add
	}
	m := handlerModule()
	m.bodies[0] = append(wasm.AppendVector(b, 0xFD1B), 0) // i32x4.extract_lane
	return m
}

// TestDeepFrames has all engines end endless recursion at the same call, as
// deep as a device may allow: none uses up its own stack.
func TestDeepFrames(t *testing.T) {
	spec := vectorSpec()
	spec.MaxCallDepth, spec.MaxCodeBytes = maxCallDepth, 1<<20
	for name, m := range deepShapes() {
		var first *Outcome
		onEngines(t, func(t *testing.T, e Engine) {
			out := end(t, programOn(t, e, m.bytes(), spec, answering).Context(0), "h", 0, 0, 1<<40)
			require.Equal(t, TrapCallDepth, out.Err.Kind, "%s: %v", name, out.Err)
			if first == nil {
				first = &out
			}
			require.Equal(t, *first, out, name)
		})
	}
}

// TestDroppedSegments drops a data segment in one context and reads it in
// another: contexts share the segments of a program, on every engine.
func TestDroppedSegments(t *testing.T) {
	// memory.init of the whole segment, or of nothing, then what is there
	read := func(length byte) []byte {
		return []byte{0, byte(wasm.OpI32Const), 8, byte(wasm.OpI32Const), 0, byte(wasm.OpI32Const), length, 0xFC, 8, 0, 0, byte(wasm.OpI32Const), 8, 0x28, 2, 0}
	}
	m := handlerModule()
	m.bodies[0] = read(4)
	m.funcs = []uint32{0, 0, 0}
	m.bodies = append(m.bodies, []byte{0, 0xFC, 9, 0, byte(wasm.OpI32Const), 0}, read(0))
	m.exports = append(append(wasm.AppendName(nil, "drop"), 0, 1), append(wasm.AppendName(nil, "nothing"), 0, 2)...)
	m.nexports = 2
	m.count, m.data = []byte{1}, []byte{1, 1, 4, 1, 2, 3, 4}
	onEngines(t, func(t *testing.T, e Engine) {
		p := programOn(t, e, m.bytes(), testSpec(), answering)
		q := programOn(t, e, m.bytes(), testSpec(), answering)
		require.Equal(t, Code(0x04030201), end(t, p.Context(0), "h", 0, 0, 1e6).Code)
		require.Nil(t, end(t, p.Context(1), "drop", 0, 0, 1e6).Err)
		for i := range 4 {
			require.Equal(t, TrapOutOfBounds, end(t, p.Context(i), "h", 0, 0, 1e6).Err.Kind)
			require.Equal(t, Code(0x04030201), end(t, p.Context(i), "nothing", 0, 0, 1e6).Code, "as before")
		}
		require.Equal(t, Code(0x04030201), end(t, q.Context(0), "h", 0, 0, 1e6).Code, "another program")
	})
}
