package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// generator writes random valid modules: loops, branches, calls direct,
// indirect and recursive, imports, all of memory, bulk operations and floating
// point, code that cannot be reached, and addresses that are sometimes out of
// bounds. pick(n) chooses from 0 to n-1; the module is a function of the
// choices.
type generator struct {
	pick func(n int) int
	b    []byte
	elem []int // functions in the table, from element 2 on
	// Of the function being written.
	types  []wasm.ValueType // of params and locals
	labels []genLabel
	result wasm.ValueType
	counts int // loop counters used
	size   int // instructions still to be written
}

// genLabel is what a branch to a control instruction carries, 0 if nothing.
type genLabel struct {
	typ  wasm.ValueType
	loop bool
}

// The functions and types of a generated module.
var (
	genOps     = []Op{OpDMAWait, OpCTInc, OpAck, OpCycles, OpMyHPU, OpNumHPUs, OpCAS, OpFAdd, OpYield, OpDMAToHost, OpLog, OpCTGet, OpMyCluster, OpNumClusters, OpHostWrite, OpWait32, OpFlowID, OpNow, OpTimerAt, OpExpiries}
	genHelpers = []wasm.FuncType{
		{Params: []wasm.ValueType{wasm.I64}, Results: []wasm.ValueType{wasm.I64}},
		{Params: []wasm.ValueType{wasm.F64, wasm.F64}, Results: []wasm.ValueType{wasm.F64}},
		{Params: []wasm.ValueType{wasm.F32, wasm.I32}, Results: []wasm.ValueType{wasm.F32}},
		{},
		handlerType,
		handlerType,
	}
	genLocals  = []wasm.ValueType{wasm.I32, wasm.I32, wasm.I64, wasm.I64, wasm.F32, wasm.F32, wasm.F64, wasm.F64}
	genGlobals = []wasm.Global{
		{Type: wasm.I32, Mutable: true, Value: 8192},
		{Type: wasm.I64, Mutable: true, Value: 7},
		{Type: wasm.F32, Mutable: true},
		{Type: wasm.F64, Mutable: true, Value: 0x7FF4000000000001},
		{Type: wasm.I32, Value: 3},
	}
)

const (
	genCounters = 3  // loops within each other
	genTable    = 24 // elements
)

func (g *generator) u(v uint32)                      { g.b = wasm.AppendU32(g.b, v) }
func (g *generator) op(op wasm.Opcode)               { g.b = appendOp(g.b, op) }
func (g *generator) opU(op wasm.Opcode, v uint32)    { g.op(op); g.u(v) }
func (g *generator) i32(v int32)                     { g.op(wasm.OpI32Const); g.b = wasm.AppendS64(g.b, int64(v)) }
func (g *generator) chance(n int) bool               { return g.pick(n) == 0 }
func (g *generator) section(id byte, content []byte) { g.b = wasm.AppendSection(g.b, id, content) }

func appendOp(b []byte, op wasm.Opcode) []byte {
	if op >= 0xFC00 {
		return wasm.AppendU32(append(b, byte(op>>8)), uint32(op&0xFF))
	}
	return append(b, byte(op))
}

// part collects what f writes, with the number n before it.
func (g *generator) part(n int, f func()) []byte {
	saved := g.b
	g.b = wasm.AppendU32(nil, uint32(n))
	f()
	out := g.b
	g.b = saved
	return out
}

// module writes a module.
func (g *generator) module() []byte {
	g.b = []byte("\x00asm\x01\x00\x00\x00")
	g.section(1, g.part(len(genOps)+len(genHelpers), func() {
		for _, op := range genOps {
			g.funcType(op.signature())
		}
		for _, t := range genHelpers {
			g.funcType(t)
		}
	}))
	g.section(2, g.part(len(genOps), func() {
		for i, op := range genOps {
			g.b = wasm.AppendName(wasm.AppendName(g.b, importModule), op.String())
			g.b = append(g.b, wasm.ExportFunc)
			g.u(uint32(i))
		}
	}))
	g.section(3, g.part(len(genHelpers), func() {
		for i := range genHelpers {
			g.u(uint32(len(genOps) + i))
		}
	}))
	g.section(4, []byte{1, 0x70, 0, genTable})
	g.section(5, []byte{1, 0, 1})
	g.section(6, g.part(len(genGlobals), func() {
		for _, x := range genGlobals {
			g.b = appendGlobal(g.b, x)
		}
	}))
	g.section(7, g.part(4, func() {
		g.b = append(wasm.AppendName(g.b, "memory"), wasm.ExportMemory, 0)
		g.b = append(wasm.AppendName(g.b, stackPointer), wasm.ExportGlobal, 0)
		g.b = append(wasm.AppendName(g.b, "a"), wasm.ExportFunc, byte(len(genOps)+4))
		g.b = append(wasm.AppendName(g.b, "b"), wasm.ExportFunc, byte(len(genOps)+5))
	}))
	g.section(9, g.part(1, func() {
		// two elements at either end stay empty
		g.b = append(g.b, 0, byte(wasm.OpI32Const), 2, byte(wasm.OpEnd), genTable-4)
		for range genTable - 4 {
			g.elem = append(g.elem, g.pick(len(genOps)+len(genHelpers)))
			g.u(uint32(g.elem[len(g.elem)-1]))
		}
	}))
	g.section(12, []byte{2})
	g.section(10, g.part(len(genHelpers), func() {
		for _, t := range genHelpers {
			body := g.part(len(genLocals)+1, func() { g.function(t) })
			g.u(uint32(len(body)))
			g.b = append(g.b, body...)
		}
	}))
	g.section(11, g.part(2, func() {
		g.b = append(g.b, 0, byte(wasm.OpI32Const), 5, byte(wasm.OpEnd), 4, 1, 2, 3, 4)
		g.b = append(g.b, 1, 8, 'p', 'a', 's', 's', 'i', 'v', 'e', '!')
	}))
	return g.b
}

func (g *generator) funcType(t wasm.FuncType) {
	g.b = wasm.AppendTypes(append(g.b, 0x60), t.Params)
	g.b = wasm.AppendTypes(g.b, t.Results)
}

func (g *generator) function(t wasm.FuncType) {
	g.types = append(append([]wasm.ValueType(nil), t.Params...), genLocals...)
	for _, l := range genLocals {
		g.b = append(g.b, 1, byte(l))
	}
	g.b = append(g.b, genCounters, byte(wasm.I32))
	g.result, g.counts, g.size = 0, 0, 40+g.pick(200)
	if len(t.Results) == 1 {
		g.result = t.Results[0]
	}
	g.labels = append(g.labels[:0], genLabel{typ: g.result})
	g.statements()
	if g.result != 0 {
		g.expr(g.result, 3)
	}
	g.op(wasm.OpEnd)
}

func (g *generator) statements() {
	for n := g.pick(7); n >= 0 && g.size > 0; n-- {
		g.statement()
	}
}

func (g *generator) statement() {
	g.size--
	switch g.pick(16) {
	case 0, 1, 2:
		l := g.pick(len(g.types))
		g.expr(g.types[l], 3)
		g.opU(wasm.OpLocalSet, uint32(l))
	case 3:
		l := g.pick(len(genGlobals) - 1)
		if l == 0 {
			g.moveStack()
			return
		}
		g.expr(genGlobals[l].Type, 2)
		g.opU(wasm.OpGlobalSet, uint32(l))
	case 4, 5:
		g.store()
	case 6, 7:
		g.ifElse(0)
	case 8, 9:
		g.loop()
	case 10:
		g.nested(wasm.OpBlock, 0, func() { g.statements() })
	case 11, 12:
		g.branch()
	case 13:
		g.bulk()
	case 14:
		g.call(wasm.FuncType{})
	case 15:
		if g.chance(12) {
			g.op(wasm.OpUnreachable)
			return
		}
		g.op(wasm.OpNop)
		g.expr([]wasm.ValueType{wasm.I32, wasm.I64, wasm.F32, wasm.F64}[g.pick(4)], 2)
		g.op(wasm.OpDrop)
	}
}

// moveStack moves the shadow stack pointer, mostly by a frame.
func (g *generator) moveStack() {
	g.opU(wasm.OpGlobalGet, 0)
	if g.chance(3) { // as compilers do, with or without the store
		g.i32(int32(32 * g.pick(12)))
		g.op(wasm.OpI32Sub)
		if g.chance(2) {
			g.opU(wasm.OpLocalSet, uint32(g.localOf(wasm.I32)))
			return
		}
		if g.chance(2) {
			g.opU(wasm.OpLocalTee, uint32(g.localOf(wasm.I32)))
		}
	} else {
		g.i32(int32(64 * (g.pick(6) - 3)))
		g.op(wasm.OpI32Add)
	}
	g.opU(wasm.OpGlobalSet, 0)
}

func (g *generator) nested(op wasm.Opcode, typ wasm.ValueType, body func()) {
	g.op(op)
	bt := byte(0x40)
	if typ != 0 {
		bt = byte(typ)
	}
	g.b = append(g.b, bt)
	g.labels = append(g.labels, genLabel{typ: typ, loop: op == wasm.OpLoop})
	body()
	g.labels = g.labels[:len(g.labels)-1]
	g.op(wasm.OpEnd)
}

func (g *generator) ifElse(typ wasm.ValueType) {
	g.expr(wasm.I32, 2)
	g.nested(wasm.OpIf, typ, func() {
		g.arm(typ)
		if typ != 0 || g.chance(2) {
			g.op(wasm.OpElse)
			g.arm(typ)
		}
	})
}

func (g *generator) arm(typ wasm.ValueType) {
	g.statements()
	if typ != 0 {
		g.expr(typ, 1)
	}
}

// loop writes a loop that runs a few times, or one that goes back under some
// condition and is ended by the budget if need be.
func (g *generator) loop() {
	if g.counts == genCounters {
		return
	}
	counter := uint32(len(g.types) + g.counts)
	g.counts++
	g.i32(int32(1 + g.pick(6)))
	g.opU(wasm.OpLocalSet, counter)
	g.nested(wasm.OpLoop, 0, func() {
		g.statements()
		if g.chance(8) {
			g.expr(wasm.I32, 1)
			g.opU(wasm.OpBrIf, 0)
		}
		g.opU(wasm.OpLocalGet, counter)
		g.i32(1)
		g.op(wasm.OpI32Sub)
		g.opU(wasm.OpLocalTee, counter)
		g.i32(0)
		g.op(wasm.OpI32LtS + 2) // gt_s
		g.opU(wasm.OpBrIf, 0)
	})
	g.counts--
}

// branch writes a br, br_if, br_table or return, and sometimes code behind it
// that cannot be reached.
func (g *generator) branch() {
	label := g.pick(len(g.labels))
	l := g.labels[len(g.labels)-1-label]
	typ := l.typ
	if l.loop {
		typ = 0
		if !g.chance(6) {
			return // unbounded loops are many enough
		}
	}
	if typ != 0 {
		g.expr(typ, 1)
	}
	switch g.pick(6) {
	case 0, 1, 2:
		g.expr(wasm.I32, 1)
		g.opU(wasm.OpBrIf, uint32(label))
		if typ != 0 {
			g.op(wasm.OpDrop)
		}
		return
	case 3:
		g.opU(wasm.OpBr, uint32(label))
	case 4:
		g.expr(wasm.I32, 1)
		g.opU(wasm.OpBrTable, 2)
		for range 3 {
			g.u(uint32(g.sameLabel(label, typ)))
		}
	case 5:
		if g.result != 0 {
			g.expr(g.result, 1)
		}
		g.op(wasm.OpReturn)
	}
	if g.chance(2) {
		g.statements()
	}
}

// sameLabel picks another label that carries the same type, or label itself.
func (g *generator) sameLabel(label int, typ wasm.ValueType) int {
	other := g.pick(len(g.labels))
	l := g.labels[len(g.labels)-1-other]
	if !l.loop && l.typ == typ {
		return other
	}
	return label
}
