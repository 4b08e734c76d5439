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
	if kind == 0 || ignoresNaN(in.Op, in.Info) {
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

// The canonical NaN of the standard: sign 0, and in the payload only the
// highest bit set.
const (
	canonicalNaN32 = 0x7FC00000
	canonicalNaN64 = 0x7FF8000000000000
)

// ignoresNaN reports whether an instruction whose last operand is a float
// treats all NaNs alike.
func ignoresNaN(op wasm.Opcode, info *wasm.OpInfo) bool {
	comparison := op >= wasm.OpF32Eq && op < wasm.OpF64Eq+6
	return info.NaN != 0 || comparison || info.Class == wasm.ClassConvert || op == wasm.OpDrop
}
