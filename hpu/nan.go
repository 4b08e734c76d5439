package hpu

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// settle makes a NaN on top of the stack canonical, unless the next
// instruction, in, ignores its bits.
func (r *rewriter) settle(in *wasm.Instr) {
	kind := r.nan
	r.nan = 0
	if kind == 0 || ignoresNaN(kind, in.Op, in.Info) {
		return
	}
	if kind == 'x' || kind == 'X' {
		r.settleLanes(kind)
		return
	}
	typ, equal := wasm.F64, wasm.OpF64Eq
	if kind == 'f' {
		typ, equal = wasm.F32, wasm.OpF32Eq
	}
	t := r.temps.get(kind, typ)
	b := wasm.AppendIndexed(r.block, wasm.OpLocalTee, t)
	if kind == 'f' {
		b = binary.LittleEndian.AppendUint32(append(b, byte(wasm.OpF32Const)), canonicalNaN32)
	} else {
		b = binary.LittleEndian.AppendUint64(append(b, byte(wasm.OpF64Const)), canonicalNaN64)
	}
	b = wasm.AppendIndexed(b, wasm.OpLocalGet, t)
	b = wasm.AppendIndexed(b, wasm.OpLocalGet, t)
	r.block = append(b, byte(equal), byte(wasm.OpSelect))
}

// settleLanes makes the NaNs canonical in the lanes, f32x4 or f64x2, of a
// vector on top of the stack.
func (r *rewriter) settleLanes(kind byte) {
	equal, canonical := wasm.OpF64x2Eq, uint64(canonicalNaN64)
	if kind == 'x' {
		equal, canonical = wasm.OpF32x4Eq, canonicalNaN32<<32|canonicalNaN32
	}
	t := r.temps.get('v', wasm.V128)
	b := wasm.AppendV128(wasm.AppendIndexed(r.block, wasm.OpLocalTee, t), canonical, canonical)
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalGet, t), wasm.OpLocalGet, t)
	r.block = wasm.AppendVector(wasm.AppendVector(b, equal), wasm.OpV128Bits)
}

// The canonical NaN of the standard: sign 0, and in the payload only the
// highest bit set.
const (
	canonicalNaN32 = 0x7FC00000
	canonicalNaN64 = 0x7FF8000000000000
)

// ignoresNaN reports whether an instruction whose last operand is a float, or
// has lanes of floats of a kind (OpInfo.NaN), treats all NaNs alike.
func ignoresNaN(kind byte, op wasm.Opcode, info *wasm.OpInfo) bool {
	if kind == 'x' || kind == 'X' {
		return info.AlikeNaN == kind || op == wasm.OpDrop
	}
	comparison := op >= wasm.OpF32Eq && op < wasm.OpF64Eq+6
	return info.NaN != 0 || comparison || info.Class == wasm.ClassConvert || op == wasm.OpDrop
}
