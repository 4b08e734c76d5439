package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// moduleOf assembles a module from raw sections, for modules that no tool would
// write.
type moduleOf struct {
	types    []wasm.FuncType // the first is the type of handlers
	imports  []Op
	funcs    []uint32 // types
	bodies   [][]byte // local declarations and instructions without the last end
	table    []byte
	memory   []byte // limits; nil: one page
	globals  []byte
	exports  []byte // behind memory and the first function, which is "h"
	nexports uint32
	start    []byte
	elements []byte
	count    []byte // of the data segments
	data     []byte
}

// handlerModule returns a module with one handler of the given instructions.
func handlerModule(code ...byte) *moduleOf {
	return &moduleOf{types: []wasm.FuncType{handlerType}, funcs: []uint32{0}, bodies: [][]byte{append([]byte{0}, code...)}}
}

func (m *moduleOf) bytes() []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	types := wasm.AppendU32(nil, uint32(len(m.types)+len(m.imports)))
	for _, t := range m.types {
		types = wasm.AppendTypes(wasm.AppendTypes(append(types, 0x60), t.Params), t.Results)
	}
	imports := wasm.AppendU32(nil, uint32(len(m.imports)))
	for i, op := range m.imports {
		t := op.signature()
		types = wasm.AppendTypes(wasm.AppendTypes(append(types, 0x60), t.Params), t.Results)
		imports = append(wasm.AppendName(wasm.AppendName(imports, importModule), op.String()), 0)
		imports = wasm.AppendU32(imports, uint32(len(m.types)+i))
	}
	funcs := wasm.AppendU32(nil, uint32(len(m.funcs)))
	for _, t := range m.funcs {
		funcs = wasm.AppendU32(funcs, t)
	}
	code := wasm.AppendU32(nil, uint32(len(m.bodies)))
	for _, body := range m.bodies {
		code = append(append(wasm.AppendU32(code, uint32(len(body)+1)), body...), byte(wasm.OpEnd))
	}
	memory := m.memory
	if memory == nil {
		memory = []byte{0, 1}
	}
	exports := wasm.AppendName(wasm.AppendU32(nil, m.nexports+2), "memory")
	exports = append(wasm.AppendName(append(exports, wasm.ExportMemory, 0), "h"), wasm.ExportFunc)
	exports = append(wasm.AppendU32(exports, uint32(len(m.imports))), m.exports...)
	b = wasm.AppendSection(b, 1, types)
	if len(m.imports) > 0 {
		b = wasm.AppendSection(b, 2, imports)
	}
	b = wasm.AppendSection(b, 3, funcs)
	b = wasm.AppendSection(b, 4, m.table)
	b = wasm.AppendSection(b, 5, append([]byte{1}, memory...))
	b = wasm.AppendSection(b, 6, m.globals)
	b = wasm.AppendSection(b, 7, exports)
	b = wasm.AppendSection(b, 8, m.start)
	b = wasm.AppendSection(b, 9, m.elements)
	b = wasm.AppendSection(b, 12, m.count)
	b = wasm.AppendSection(b, 10, code)
	return wasm.AppendSection(b, 11, m.data)
}
