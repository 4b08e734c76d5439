package hpu

import (
	"runtime"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// remByDivision makes the rewriter write remainders as divisions. The reason is
// a bug of wazero v1.12.0 on arm64: if registers are short, a remainder reads
// its quotient from a place where it was not stored (tetratelabs/wazero #2508,
// fixed after the release by 89079b916). Elsewhere the instruction is correct
// and faster. Remove this when a release has the fix.
const remByDivision = runtime.GOARCH == "arm64"

// remainder writes an integer remainder as a - a/b*b, for engines with a wrong
// instruction. Its cost remains the cost of the instruction.
func (r *rewriter) remainder(in *wasm.Instr) {
	if !r.divide {
		r.copy(in)
		return
	}
	letters, typ := "pq", wasm.I32
	constant, equal, multiply, subtract := wasm.OpI32Const, wasm.OpI32Eq, wasm.OpI32Mul, wasm.OpI32Sub
	if in.Op >= wasm.OpI64RemS {
		letters, typ = "PQ", wasm.I64
		constant, equal, multiply, subtract = wasm.OpI64Const, wasm.OpI64Eq, wasm.OpI64Mul, wasm.OpI64Sub
	}
	x, y := r.temps.get(letters[0], typ), r.temps.get(letters[1], typ)
	divide := in.Op - (wasm.OpI32RemS - wasm.OpI32DivS)
	b := wasm.AppendIndexed(r.block, wasm.OpLocalSet, y)
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalTee, x), wasm.OpLocalGet, x)
	// divide by 1 instead of -1: the result is also 0, without overflow
	if in.Op == wasm.OpI32RemS || in.Op == wasm.OpI64RemS {
		b = wasm.AppendIndexed(append(b, byte(constant), 1), wasm.OpLocalGet, y)
		b = append(wasm.AppendIndexed(b, wasm.OpLocalGet, y), byte(constant), 0x7F, byte(equal), byte(wasm.OpSelect))
		b = wasm.AppendIndexed(b, wasm.OpLocalTee, y)
	} else {
		b = wasm.AppendIndexed(b, wasm.OpLocalGet, y)
	}
	b = wasm.AppendIndexed(append(b, byte(divide)), wasm.OpLocalGet, y)
	r.block = append(b, byte(multiply), byte(subtract))
}
