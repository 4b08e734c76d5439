package hpu

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// Names under which a rewritten module exports what the engine needs. They
// replace the module's own export names.
const exportMemory = "m"

var exportOfReg = [numRegs]string{regRemaining: "r", regStack: "s", regLimit: "l", regDepth: "d", regHPU: "h", regOuter: "o", regOwn: "w", regOwnBytes: "wb", regPads: "p", regPadsBytes: "pb"}

// registers returns the globals that are registers; -1: the module has no such
// register.
func (g *globalSet) registers() [numRegs]int {
	is := func(global uint32, has bool) int {
		if !has {
			return -1
		}
		return int(global)
	}
	all := [numRegs]int{
		regRemaining: int(g.remaining), regStack: is(g.stack, g.hasStack), regLimit: is(g.limit, g.hasStack), regDepth: is(g.depth, g.hasDepth),
		regHPU: is(g.hpu, g.hasHPU),
	}
	for r := regOuter; r < numRegs; r++ {
		all[r] = is(g.levels+uint32(r-regOuter), g.hasLevels)
	}
	return all
}

// exports returns the names of the registers; "": the module has no such
// register.
func (g *globalSet) exports() (names [numRegs]string) {
	for r, global := range g.registers() {
		if global >= 0 {
			names[r] = exportOfReg[r]
		}
	}
	return names
}

func (r reg) valueType() wasm.ValueType {
	if r == regRemaining {
		return wasm.I64
	}
	return wasm.I32
}

// exportOf names an exported function of a rewritten module.
func exportOf(fn uint32) string { return "f" + strconv.FormatUint(uint64(fn), 10) }

// entryOf names the function that enters a handler.
func entryOf(fn uint32) string { return "e" + strconv.FormatUint(uint64(fn), 10) }

// entryType is the signature of functions that enter handlers. Parameters:
// arguments, state and registers. Results: return code and cycles left.
var entryType = func() wasm.FuncType {
	t := wasm.FuncType{Params: slices.Clone(handlerType.Params), Results: []wasm.ValueType{wasm.I32, wasm.I64}}
	for r := range numEntered {
		t.Params = append(t.Params, r.valueType())
	}
	return t
}()

// globalExport names a mutable global that the module defines, or a global that
// marks a dropped data segment.
func globalExport(i int) string { return "g" + strconv.Itoa(i) }

// maxPages lets the engine enlarge the memory, also the largest one;
// rewritten code cannot.
const maxPages = maxTotalMemory/wasm.PageSize + 1

// emit writes the rewritten module: the same functions, indices, data and
// table. It adds exports, globals, charges and entries of handlers. It leaves
// out the start function, custom sections and unreachable code. exported are
// the functions to export, handlers the functions to enter.
func (r *rewriter) emit(facts []wasm.Facts, infos []FuncInfo, exported, handlers []uint32) []byte {
	m := r.m
	wrapper := make(map[uint32]uint32) // for imports in the table
	var wrapped []uint32
	for _, e := range m.Elems {
		for _, fn := range e.Funcs {
			if _, ok := wrapper[fn]; !ok && int(fn) < len(m.Imports) {
				wrapper[fn] = r.moved(uint32(m.FuncCount() + len(wrapped)))
				wrapped = append(wrapped, fn)
			}
		}
	}
	var codes []byte
	var places []place // in codes
	for i := range m.Codes {
		body := r.function(i, facts[i].Loops > 0, &infos[len(m.Imports)+i])
		codes = append(wasm.AppendU32(codes, uint32(len(body))), body...)
		for _, p := range r.places {
			places = append(places, place{uint32(len(codes)-len(r.out)) + p.at, p.offset})
		}
	}
	placesEnd := len(codes)
	for _, fn := range wrapped {
		body := r.wrapper(fn)
		codes = append(wasm.AppendU32(codes, uint32(len(body))), body...)
	}
	for _, fn := range handlers {
		body := r.entry(fn)
		codes = append(wasm.AppendU32(codes, uint32(len(body))), body...)
	}
	number := wasm.AppendU32(nil, uint32(len(m.Codes)+len(wrapped)+len(handlers)))
	codes = append(number, codes...)
	for i := range places { // the code begins behind the number
		places[i].at += uint32(len(number))
	}
	r.all, r.allEnd = places, placesEnd+len(number)
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = wasm.AppendSection(b, 1, r.types())
	b = wasm.AppendSection(b, 2, r.imports())
	b = wasm.AppendSection(b, 3, r.functions(wrapped, len(handlers)))
	if m.HasTable {
		b = wasm.AppendSection(b, 4, wasm.AppendU32(wasm.AppendU32([]byte{1, 0x70, 1}, m.Table), m.Table))
	}
	b = wasm.AppendSection(b, 5, wasm.AppendU32(wasm.AppendU32([]byte{1, 1}, m.Memory), maxPages))
	firstEntry := r.moved(uint32(m.FuncCount() + len(wrapped)))
	b = wasm.AppendSection(b, 6, r.globalSection(len(handlers), firstEntry))
	b = wasm.AppendSection(b, 7, r.exports(exported, handlers, firstEntry))
	b = wasm.AppendSection(b, 9, r.elements(wrapper))
	if m.HasCount {
		b = wasm.AppendSection(b, 12, wasm.AppendU32(nil, uint32(len(m.Data))))
	}
	b = wasm.AppendSection(b, 10, codes)
	r.codeAt = len(b) - len(codes)
	return offsetSections(wasm.AppendSection(b, 11, dataSection(r.m.Data)))
}

// wrapper makes a function that charges for an import and calls it. The table
// holds it in place of the import, so that a call through the table costs the
// same.
func (r *rewriter) wrapper(fn uint32) []byte {
	params := uint32(len(r.m.TypeOf(fn).Params))
	r.temps, r.budget = temporaries{next: params}, budget{global: r.globals.remaining}
	var b []byte
	if cost := r.callCosts[fn] * r.prices.parts; cost > 0 {
		b = wasm.AppendIndexed(b, wasm.OpGlobalGet, r.globals.remaining)
		b = wasm.AppendS64(append(b, byte(wasm.OpI64Const)), cost)
		b = append(b, byte(wasm.OpI64Sub))
		b = wasm.AppendIndexed(b, wasm.OpGlobalSet, r.globals.remaining)
		if r.watch.Blocks {
			b = r.reports.tell(b, site{kind: siteImport, cost: cost}, -1, -1)
		}
	}
	for i := range params {
		b = wasm.AppendIndexed(b, wasm.OpLocalGet, i)
	}
	b = append(r.budget.check(r.callImport(b, fn)), byte(wasm.OpEnd))
	return append(r.temps.declare(nil, nil), b...)
}

// callImport calls an import whose arguments are on the stack. The import also
// takes the cycles left and returns them behind its result. If another handler
// may run meanwhile, the module itself saves the other registers. Access from
// outside would cost an engine more than that.
func (r *rewriter) callImport(b []byte, fn uint32) []byte {
	registers := r.globals.registers()
	var kept []reg
	for reg := regRemaining + 1; reg < numRegs && r.ops[fn].MayBlock(); reg++ {
		if registers[reg] >= 0 {
			kept = append(kept, reg)
		}
	}
	in := func(reg reg) uint32 { return r.temps.get('0'+byte(reg), reg.valueType()) }
	for _, reg := range kept {
		b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpGlobalGet, uint32(registers[reg])), wasm.OpLocalSet, in(reg))
	}
	b = wasm.AppendIndexed(b, wasm.OpGlobalGet, r.globals.remaining)
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpCall, fn), wasm.OpGlobalSet, r.globals.remaining)
	for _, reg := range kept {
		b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalGet, in(reg)), wasm.OpGlobalSet, uint32(registers[reg]))
	}
	return b
}

// entry makes a function that fills the registers and calls a handler. This
// costs an engine less than access to each global from outside.
func (r *rewriter) entry(fn uint32) []byte {
	b, arguments := []byte{0}, uint32(len(handlerType.Params))
	registers := r.globals.registers()
	for reg, g := range registers[:numEntered] {
		if g >= 0 {
			b = wasm.AppendIndexed(b, wasm.OpLocalGet, arguments+uint32(reg))
			b = wasm.AppendIndexed(b, wasm.OpGlobalSet, uint32(g))
		}
	}
	for i := range arguments {
		b = wasm.AppendIndexed(b, wasm.OpLocalGet, i)
	}
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpCall, r.moved(fn)), wasm.OpGlobalGet, r.globals.remaining)
	return append(b, byte(wasm.OpEnd))
}

func (r *rewriter) types() []byte {
	types := append(slices.Clip(r.m.Types), entryType, watchType)
	for _, op := range r.ops {
		types = append(types, op.imported())
	}
	b := wasm.AppendU32(nil, uint32(len(types)))
	for _, t := range types {
		b = wasm.AppendTypes(append(b, 0x60), t.Params)
		b = wasm.AppendTypes(b, t.Results)
	}
	return b
}

func (r *rewriter) imports() []byte {
	n := len(r.m.Imports)
	if r.watch.tells() {
		n++
	}
	if n == 0 {
		return nil
	}
	b := wasm.AppendU32(nil, uint32(n))
	for i, imp := range r.m.Imports {
		b = wasm.AppendName(wasm.AppendName(b, imp.Module), imp.Name)
		b = wasm.AppendU32(append(b, wasm.ExportFunc), uint32(len(r.m.Types)+2+i))
	}
	if r.watch.tells() {
		b = wasm.AppendName(wasm.AppendName(b, importModule), watchImport)
		b = wasm.AppendU32(append(b, wasm.ExportFunc), uint32(len(r.m.Types))+1)
	}
	return b
}

func (r *rewriter) functions(wrapped []uint32, entries int) []byte {
	b := wasm.AppendU32(nil, uint32(len(r.m.Funcs)+len(wrapped)+entries))
	for _, t := range r.m.Funcs {
		b = wasm.AppendU32(b, t)
	}
	for _, fn := range wrapped {
		b = wasm.AppendU32(b, r.m.TypeIndex(fn))
	}
	for range entries {
		b = wasm.AppendU32(b, uint32(len(r.m.Types)))
	}
	return b
}

// variables is how many globals a rewritten module has, without the references
// to entries.
func (r *rewriter) variables() uint32 {
	g := &r.globals
	n := uint32(len(r.m.Globals)) + 1
	if g.hasStack {
		n++
	}
	if g.hasDepth {
		n++
	}
	if g.hasHPU {
		n++
	}
	if g.hasLevels {
		n += numLevelRegs
	}
	return n + uint32(len(g.dropped))
}

func (r *rewriter) globalSection(entries int, firstEntry uint32) []byte {
	n := r.variables()
	b := wasm.AppendU32(nil, n+uint32(entries))
	for _, x := range r.m.Globals {
		b = appendGlobal(b, x)
	}
	b = appendGlobal(b, wasm.Global{Type: wasm.I64, Mutable: true}) // regRemaining
	for range n - uint32(len(r.m.Globals)) - 1 {
		b = appendGlobal(b, wasm.Global{Type: wasm.I32, Mutable: true})
	}
	for i := range uint32(entries) {
		b = wasm.AppendIndexed(append(b, byte(wasm.FuncRef), 0), wasm.OpRefFunc, firstEntry+i)
		b = append(b, byte(wasm.OpEnd))
	}
	return b
}

func appendGlobal(b []byte, g wasm.Global) []byte {
	mutable := byte(0)
	if g.Mutable {
		mutable = 1
	}
	b = append(b, byte(g.Type), mutable)
	switch g.Type {
	case wasm.I32:
		b = wasm.AppendS64(append(b, byte(wasm.OpI32Const)), int64(int32(g.Value)))
	case wasm.I64:
		b = wasm.AppendS64(append(b, byte(wasm.OpI64Const)), int64(g.Value))
	case wasm.F32:
		b = binary.LittleEndian.AppendUint32(append(b, byte(wasm.OpF32Const)), uint32(g.Value))
	case wasm.F64:
		b = binary.LittleEndian.AppendUint64(append(b, byte(wasm.OpF64Const)), g.Value)
	case wasm.V128:
		b = wasm.AppendV128(b, g.Value, g.High)
	}
	return append(b, byte(wasm.OpEnd))
}

func (r *rewriter) exports(exported, handlers []uint32, firstEntry uint32) []byte {
	var b []byte
	n := uint32(0)
	add := func(name string, kind byte, index uint32) {
		b = wasm.AppendU32(append(wasm.AppendName(b, name), kind), index)
		n++
	}
	add(exportMemory, wasm.ExportMemory, 0)
	for reg, g := range r.globals.registers() {
		if g >= 0 {
			add(exportOfReg[reg], wasm.ExportGlobal, uint32(g))
		}
	}
	for i, g := range r.m.Globals {
		if g.Mutable {
			add(globalExport(i), wasm.ExportGlobal, uint32(i))
		}
	}
	for _, i := range slices.Sorted(maps.Values(r.globals.dropped)) {
		add(globalExport(int(i)), wasm.ExportGlobal, i)
	}
	for _, fn := range exported {
		add(exportOf(fn), wasm.ExportFunc, r.moved(fn))
	}
	for i, fn := range handlers {
		add(entryOf(fn), wasm.ExportFunc, firstEntry+uint32(i))
		add(entryGlobal(fn), wasm.ExportGlobal, r.variables()+uint32(i))
	}
	return append(wasm.AppendU32(nil, n), b...)
}

func (r *rewriter) elements(wrapper map[uint32]uint32) []byte {
	if len(r.m.Elems) == 0 {
		return nil
	}
	b := wasm.AppendU32(nil, uint32(len(r.m.Elems)))
	for _, e := range r.m.Elems {
		b = append(b, 0, byte(wasm.OpI32Const))
		b = append(wasm.AppendS64(b, int64(int32(e.At))), byte(wasm.OpEnd))
		b = wasm.AppendU32(b, uint32(len(e.Funcs)))
		for _, fn := range e.Funcs {
			to, isImport := wrapper[fn]
			if !isImport {
				to = r.moved(fn)
			}
			b = wasm.AppendU32(b, to)
		}
	}
	return b
}

func dataSection(data []wasm.Data) []byte {
	if len(data) == 0 {
		return nil
	}
	b := wasm.AppendU32(nil, uint32(len(data)))
	for _, s := range data {
		if s.Passive {
			b = append(b, 1)
		} else {
			b = append(b, 0, byte(wasm.OpI32Const))
			b = append(wasm.AppendS64(b, int64(int32(s.At))), byte(wasm.OpEnd))
		}
		b = append(wasm.AppendU32(b, uint32(len(s.Bytes))), s.Bytes...)
	}
	return b
}
