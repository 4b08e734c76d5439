package hpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// valueFrom has for each pair of types, those of the signatures of opcodes, the conversion of a
// value.
var valueFrom = map[string]string{
	"iI": "i64.extend_i32_u", "if": "f32.convert_i32_s", "iF": "f64.convert_i32_s",
	"Ii": "i32.wrap_i64", "fi": "i32.reinterpret_f32", "Fi": "i64.reinterpret_f64 i32.wrap_i64",
}

// appendConverted appends the conversion of the value on top of the stack.
func appendConverted(b []byte, from, to byte) []byte {
	for _, name := range strings.Fields(valueFrom[string([]byte{from, to})]) {
		op, _ := wasm.OpcodeByName(name)
		b = appendOp(b, op)
	}
	return b
}

// consumed appends to a handler a load from where there is no memory, whose value operand n of an
// instruction is, and returns where the load is.
func consumed(load, by wasm.Opcode, n int) (b []byte, at int) {
	params, results, _ := strings.Cut(by.Info().Sig, ":")
	for i := range params {
		if i != n {
			b = appendConverted(append(b, byte(wasm.OpLocalGet), 0), 'i', params[i])
			continue
		}
		b = append(b, byte(wasm.OpLocalGet), 1)
		at = len(b)
		b = append(appendOp(b, load), 0, 0)
	}
	b = appendOp(b, by)
	switch by.Info().Imm {
	case wasm.ImmMem:
		b = append(b, 0, 0)
	case wasm.ImmZero:
		b = append(b, 0)
	case wasm.ImmZeroZero:
		b = append(b, 0, 0)
	}
	if results == "" {
		return append(b, byte(wasm.OpI32Const), 0), at
	}
	return appendConverted(b, results[0], 'i'), at
}

// takers are the instructions that take a value of a type, with the operand that it is.
func takers(typ byte) map[wasm.Opcode][]int {
	out := make(map[wasm.Opcode][]int)
	for op := range wasm.Opcode(0xFC0C) {
		if op >= 0x100 && op < 0xFC00 || op.Info() == nil || op == wasm.OpMemoryInit {
			continue
		}
		params, _, _ := strings.Cut(op.Info().Sig, ":")
		for n := range params {
			if params[n] == typ {
				out[op] = append(out[op], n)
			}
		}
	}
	return out
}

// TestPlaceOfTrap has every load trap in front of every instruction that takes its value, as each
// of its operands: the trap is at the load, although compilers make one instruction of both.
func TestPlaceOfTrap(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		var wrong []string
		tried := 0
		for load := range wasm.Opcode(0x100) {
			if load.Info() == nil || load.Info().Class != wasm.ClassLoad {
				continue
			}
			for by, operands := range takers(load.Info().Sig[2]) {
				for _, n := range operands {
					b, at := consumed(load, by, n)
					p := programOn(t, e, handlerModule(b...).bytes(), testSpec(), answering)
					out := end(t, p.Context(0), "h", 8, 0x7FFFFFF0, 1e6)
					name := fmt.Sprintf("%s in front of %s, operand %d", load.Info().Name, by.Info().Name, n)
					require.NotNil(t, out.Err, name)
					require.Equal(t, TrapOutOfBounds, out.Err.Kind, name)
					if got := out.Err.Offset - p.Module().wasm.Codes[0].Body; got != at {
						wrong = append(wrong, fmt.Sprintf("%s: 0x%x instead of 0x%x", name, got, at))
					}
					require.NoError(t, p.image.Close())
					tried++
				}
			}
		}
		require.Empty(t, wrong, "%d of %d", len(wrong), tried)
		require.Greater(t, tried, 500)
	})
}

// An indirect call that finds no function, behind the end of the table, too,
// and one that finds a function of another type are told apart, in the same
// words on all engines.
func TestIndirectCallsThatFail(t *testing.T) {
	m := handlerModule(0x20, 0, 0x11, 1, 0) // the element args, called with no argument
	m.types = append(m.types, wasm.FuncType{Results: []wasm.ValueType{wasm.I32}})
	m.funcs, m.bodies = append(m.funcs, 1), append(m.bodies, []byte{0, 0x41, 7})
	// the function of no argument, the handler, nothing
	m.table, m.elements = []byte{1, 0x70, 0, 3}, []byte{1, 0, 0x41, 0, 0x0B, 2, 1, 0}
	onEngines(t, func(t *testing.T, e Engine) {
		p := programOn(t, e, m.bytes(), testSpec(), answering)
		require.Equal(t, Code(7), end(t, p.Context(0), "h", 0, 0, 1e6).Code)
		for element, want := range map[uint32]string{
			1: "indirect call with another signature than the function's", 2: "indirect call of a function that is not there", 99: "indirect call of a function that is not there",
		} {
			out := end(t, p.Context(0), "h", element, 0, 1e6)
			require.ErrorContains(t, out.Err, ": "+want)
			require.Equal(t, Fail, out.Code)
		}
	})
}
