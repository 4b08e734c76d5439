package hpu

import (
	"github.com/spinsim/spinsim/hpu/internal/wasm"
	"github.com/spinsim/spinsim/internal/manifest"
)

// Sizes are the sizes of a module that a device limits.
type Sizes struct {
	CodeBytes   int   // code section, bytes
	Functions   int   // that the module defines
	MemoryBytes int64 // that the module declares
}

// Sizes returns the sizes of the module.
func (m *Module) Sizes() Sizes {
	return Sizes{
		CodeBytes: m.wasm.CodeBytes, Functions: len(m.wasm.Funcs), MemoryBytes: int64(m.wasm.Memory) * wasm.PageSize,
	}
}

// Check returns all reasons it finds why Load refuses a module; none: Load
// accepts it. If the only problem is that the module is too large for the
// device, Check returns it as a larger device would load it. A bad module is
// not returned. After an error of the binary format, Check stops.
func Check(name string, binary []byte, spec *Spec) (m *Module, reasons []*LoadError) {
	m = &Module{name: name, spec: *spec}
	note := func(err error) { reasons = append(reasons, m.loadError(err)) }
	if err := spec.Validate(); err != nil {
		note(err)
		return nil, reasons
	}
	large := *spec
	large.MaxCodeBytes, large.MaxFunctions, large.MaxMemoryBytes = 1<<26, 1<<20, maxTotalMemory
	anything := wasm.Limits{CodeBytes: large.MaxCodeBytes, Functions: large.MaxFunctions, MemoryBytes: large.MaxMemoryBytes, SIMD: spec.Costs.SIMD.has(), Custom: manifest.Section}
	var err error
	if m.wasm, err = wasm.Decode(append([]byte(nil), binary...), anything); err != nil {
		note(err)
		return nil, reasons
	}
	for _, limit := range []func(l *wasm.Limits){
		func(l *wasm.Limits) { l.Functions = spec.MaxFunctions },
		func(l *wasm.Limits) { l.MemoryBytes = spec.MaxMemoryBytes },
		func(l *wasm.Limits) { l.CodeBytes = spec.MaxCodeBytes },
	} {
		l := anything
		limit(&l)
		if _, err := wasm.Decode(m.wasm.Bytes, l); err != nil {
			note(err)
		}
	}
	tooLarge := len(reasons)
	for _, e := range m.checkABI() {
		note(e)
	}
	for _, e := range wasm.Problems(m.wasm) {
		note(e)
	}
	if err := m.findHandlers(); err != nil {
		note(err)
	} else if err := m.readManifest(); err != nil {
		note(err)
	}
	if len(reasons) > tooLarge {
		return nil, reasons
	}
	loaded, err := Load(name, binary, &large)
	if err != nil {
		note(err)
		return nil, reasons
	}
	return loaded, reasons
}
