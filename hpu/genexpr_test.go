package hpu

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// address writes an address, mostly within the first page.
func (g *generator) address() {
	g.expr(wasm.I32, 1)
	if !g.chance(200) {
		g.i32(int32([]int{0x7FF8, 0x7FF8, 0x7FF8, 0x7FFF}[g.pick(4)]))
		g.op(0x71) // and
	}
}

func (g *generator) memArg(op wasm.Opcode) {
	g.op(op)
	g.u(uint32(g.pick(int(op.Info().Align) + 1)))
	g.u(uint32(g.pick(64)))
}

func (g *generator) store() {
	op := wasm.Opcode(0x36 + g.pick(9))
	g.address()
	g.expr(letterOf(op.Info().Sig[1]), 2)
	g.memArg(op)
}

func letterOf(l byte) wasm.ValueType {
	return map[byte]wasm.ValueType{'i': wasm.I32, 'I': wasm.I64, 'f': wasm.F32, 'F': wasm.F64}[l]
}

func (g *generator) bulk() {
	switch g.pick(4) {
	case 0:
		g.address()
		g.expr(wasm.I32, 1)
		g.length()
		g.op(wasm.OpMemoryFill)
		g.u(0)
	case 1:
		g.address()
		g.address()
		g.length()
		g.op(wasm.OpMemoryCopy)
		g.u(0)
		g.u(0)
	case 2:
		g.address()
		g.i32(int32(g.pick(3)))
		g.i32(int32(g.pick(8)))
		g.op(wasm.OpMemoryInit)
		g.u(1)
		g.u(0)
	case 3:
		if g.chance(4) {
			g.opU(wasm.OpDataDrop, uint32(g.pick(2)))
		}
	}
}

func (g *generator) length() {
	g.expr(wasm.I32, 0)
	if !g.chance(30) {
		g.i32(0xFF)
		g.op(0x71)
	}
}

// call writes a call of a function or import with the result type of t, direct
// or through the table; a result is dropped if t has none.
func (g *generator) call(t wasm.FuncType) {
	candidates := make([]int, 0, len(genOps)+len(genHelpers))
	sigs := make([]wasm.FuncType, 0, cap(candidates))
	for _, op := range genOps {
		sigs = append(sigs, op.signature())
	}
	sigs = append(sigs, genHelpers...)
	for i, s := range sigs {
		if len(t.Results) == 0 || len(s.Results) == 1 && s.Results[0] == t.Results[0] {
			candidates = append(candidates, i)
		}
	}
	i := candidates[g.pick(len(candidates))]
	if i < len(genOps) {
		g.arguments(genOps[i])
	} else {
		for _, p := range sigs[i].Params {
			g.expr(p, 1)
		}
	}
	if g.chance(3) {
		g.element(i)
		g.opU(wasm.OpCallIndirect, uint32(i))
		g.u(0)
	} else {
		g.opU(wasm.OpCall, uint32(i))
	}
	if len(t.Results) == 0 && len(sigs[i].Results) == 1 {
		g.op(wasm.OpDrop)
	}
}

// element writes the index of an element of the table, mostly one that holds function fn.
func (g *generator) element(fn int) {
	start := g.pick(genTable)
	for i := range g.elem {
		if at := (start + i) % len(g.elem); g.elem[at] == fn && !g.chance(20) {
			g.i32(int32(2 + at))
			return
		}
	}
	g.i32(int32(start))
}

// arguments writes the arguments of an import: addresses where addresses are
// meant, mostly good ones.
func (g *generator) arguments(op Op) {
	switch op {
	case OpCAS, OpFAdd:
		g.address()
		g.expr(wasm.I64, 1)
		if op == OpCAS {
			g.expr(wasm.I64, 1)
		}
	case OpDMAToHost:
		g.i32(int32(g.pick(2)))
		g.expr(wasm.I64, 1)
		g.address()
		g.length()
	case OpLog:
		g.address()
		g.length()
	case OpWait32:
		g.address()
		g.expr(wasm.I32, 1)
	case OpCTGet:
		g.expr(wasm.I32, 1)
		g.address()
	case OpTimerAt:
		g.expr(wasm.I64, 1)
		g.expr(wasm.I64, 1)
		g.record()
	default:
		for _, p := range op.signature().Params {
			g.expr(p, 1)
		}
	}
}

// record writes the address of an operation record: mostly of one with a payload
// and a user header, which it writes before.
func (g *generator) record() {
	if g.chance(4) {
		g.address()
		return
	}
	at := int32(0x6000 + 8*g.pick(64))
	const i32Store, i64Store, extendU = 0x36, 0x37, 0xAD
	length := func() {
		if g.i32(int32(g.pick(1 << 14))); g.chance(10) {
			g.length()
			g.op(wasm.OpI32Sub)
		}
	}
	for _, f := range []struct {
		store  wasm.Opcode
		offset uint32
		value  func()
	}{
		{i32Store, 0, g.address},
		{i64Store, 16, func() { length(); g.op(extendU) }},
		{i32Store, 104, g.address},
		{i32Store, 108, length},
	} {
		g.i32(at)
		f.value()
		g.op(f.store)
		g.u(0)
		g.u(f.offset)
	}
	g.i32(at)
}

// expr writes an expression of type t.
func (g *generator) expr(t wasm.ValueType, depth int) {
	g.size--
	if depth <= 0 || g.size <= 0 || g.chance(4) {
		g.leaf(t)
		return
	}
	switch g.pick(14) {
	case 0:
		g.ifElse(t)
	case 1:
		g.nested(wasm.OpBlock, t, func() { g.arm(t) })
	case 2:
		g.call(wasm.FuncType{Results: []wasm.ValueType{t}})
	case 3:
		g.expr(t, depth-1)
		g.expr(t, depth-1)
		g.expr(wasm.I32, depth-1)
		g.op(wasm.OpSelect)
	case 4:
		g.expr(t, depth-1)
		g.opU(wasm.OpLocalTee, uint32(g.localOf(t)))
	case 5:
		g.load(t)
	default:
		g.numeric(t, depth)
	}
}

func (g *generator) localOf(t wasm.ValueType) int {
	start := g.pick(len(g.types))
	for i := range g.types {
		if l := (start + i) % len(g.types); g.types[l] == t {
			return l
		}
	}
	panic("every type has locals")
}

func (g *generator) leaf(t wasm.ValueType) {
	if g.chance(2) {
		g.opU(wasm.OpLocalGet, uint32(g.localOf(t)))
		return
	}
	if g.chance(4) {
		for i, x := range genGlobals {
			if x.Type == t {
				g.opU(wasm.OpGlobalGet, uint32(i))
				return
			}
		}
	}
	v := interesting[g.pick(len(interesting))]
	switch t {
	case wasm.I32:
		if g.chance(10) {
			g.op(wasm.OpMemorySize)
			g.u(0)
			return
		}
		g.i32(int32(v))
	case wasm.I64:
		g.op(wasm.OpI64Const)
		g.b = wasm.AppendS64(g.b, int64(v))
	case wasm.F32:
		g.op(wasm.OpF32Const)
		g.b = binary.LittleEndian.AppendUint32(g.b, uint32(v>>32))
	case wasm.F64:
		g.op(wasm.OpF64Const)
		g.b = binary.LittleEndian.AppendUint64(g.b, v)
	}
}

// interesting holds numbers at the edges of integer and floating-point types.
var interesting = []uint64{
	0, 1, 2, 8, 31, 64, 255, 4096, 32760, 1 << 31, 1<<31 - 1, 1<<32 - 1, 1 << 63, 1<<63 - 1, 1<<64 - 1,
	0x3FF0000000000000, 0xBFF8000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8000000000123,
	0x7FF0000000000001, 0x43E0000000000000, 0xC3E0000000000001, 0x41DFFFFFFFC00000, 0x0000000000000001, 0x3FE0000000000000,
	0x7FC0000012345678, 0xFFA0000100000000, 0x4F00000000000000, 0x3F80000000000000, 0x8000000000000000,
}

func (g *generator) load(t wasm.ValueType) {
	g.address()
	switch t {
	case wasm.I32:
		g.memArg([]wasm.Opcode{0x28, 0x2C, 0x2D, 0x2E, 0x2F}[g.pick(5)])
	case wasm.I64:
		g.memArg([]wasm.Opcode{0x29, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35}[g.pick(7)])
	case wasm.F32:
		g.memArg(0x2A)
	case wasm.F64:
		g.memArg(0x2B)
	}
}

// genNumeric lists the numeric instructions by result type.
var genNumeric = func() map[wasm.ValueType][]wasm.Opcode {
	m := make(map[wasm.ValueType][]wasm.Opcode)
	for op := wasm.Opcode(0x45); op <= 0xFC07; op++ {
		if op == 0xC5 {
			op = 0xFC00
		}
		if info := op.Info(); info != nil && info.Sig != "" && info.Sig[len(info.Sig)-1] != ':' {
			t := letterOf(info.Sig[len(info.Sig)-1])
			m[t] = append(m[t], op)
		}
	}
	return m
}()

func (g *generator) numeric(t wasm.ValueType, depth int) {
	ops := genNumeric[t]
	op := ops[g.pick(len(ops))]
	info := op.Info()
	if info.Class == wasm.ClassConvert && (info.Sig[0] == 'f' || info.Sig[0] == 'F') && t == wasm.I32 && !g.chance(6) {
		op = 0xFC00 + wasm.Opcode(g.pick(4)) // trapping conversions trap too often
	}
	for i := 0; op.Info().Sig[i] != ':'; i++ {
		g.expr(letterOf(op.Info().Sig[i]), depth-1)
	}
	if op.Info().Class == wasm.ClassIntDiv && !g.chance(6) { // mostly not by zero
		if t == wasm.I32 {
			g.i32(1)
			g.op(0x72) // or
		} else {
			g.op(wasm.OpI64Const)
			g.b = append(g.b, 1, 0x84) // or
		}
	}
	g.op(op)
}
