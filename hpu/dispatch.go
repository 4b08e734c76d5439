package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// dispatchFunc is the export of the dispatch module. entryGlobal begins the
// names under which a rewritten module exports references to its entries.
const dispatchFunc = "d"

func entryGlobal(fn uint32) string { return "x" + entryOf(fn) }

// dispatch is a module with one function. The function calls a handler's entry
// in any other module by its reference, with the arguments behind. A function
// that wazero calls from outside has its own machine stack and records, 12 KB.
// All programs of an engine share those of dispatch in turn, so a call finds
// them in the processor's cache.
var dispatch = func() []byte {
	t := wasm.FuncType{Params: append([]wasm.ValueType{wasm.FuncRef}, entryType.Params...), Results: entryType.Results}
	types := []byte{2}
	for _, t := range []wasm.FuncType{entryType, t} {
		types = wasm.AppendTypes(wasm.AppendTypes(append(types, 0x60), t.Params), t.Results)
	}
	body := wasm.AppendIndexed([]byte{0, byte(wasm.OpI32Const), 0}, wasm.OpLocalGet, 0)
	body = wasm.AppendIndexed(body, wasm.OpTableSet, 0)
	for i := range entryType.Params {
		body = wasm.AppendIndexed(body, wasm.OpLocalGet, uint32(i)+1)
	}
	body = append(body, byte(wasm.OpI32Const), 0, byte(wasm.OpCallIndirect), 0, 0, byte(wasm.OpEnd))
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = wasm.AppendSection(b, 1, types)
	b = wasm.AppendSection(b, 3, []byte{1, 1})
	b = wasm.AppendSection(b, 4, []byte{1, byte(wasm.FuncRef), 0, 1})
	b = wasm.AppendSection(b, 7, append(wasm.AppendName([]byte{1}, dispatchFunc), wasm.ExportFunc, 0))
	b = wasm.AppendSection(b, 10, append(wasm.AppendU32([]byte{1}, uint32(len(body))), body...))
	// The name distinguishes the module's function from functions of programs
	// in stack traces.
	name := wasm.AppendName(nil, "dispatch")
	return wasm.AppendSection(b, 0, append(wasm.AppendName(nil, "name"), append(wasm.AppendU32([]byte{0}, uint32(len(name))), name...)...))
}()
