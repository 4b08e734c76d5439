package hpu

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/visible"
)

// Module is a handler module that was checked for a device and rewritten. It is
// read-only.
type Module struct {
	name      string
	library   string // see LoadServing
	spec      Spec
	wasm      *wasm.Module
	ops       []Op // of each imported function
	functions []FuncInfo
	handlers  []*export
	byName    map[string]*export
	prepare   []uint32 // start function and _initialize, in the order of execution
	binary    []byte   // rewritten
	hash      [sha256.Size]byte
	globals   globalSet
	prices    *prices
	// of each imported function, cycles, without the call unless the table
	// gives the whole cost
	importCosts []int64
	levels      bool    // the device has memories of different cost
	weights     []int64 // of an active call of each function
	manifest    *manifest.Manifest
	places      []place // of the rewritten module
	placesEnd   int     // end of the last place
	codeAt      int     // offset of the contents of the code section in binary
	source      source
	sites       []site
	null        uint32 // end of the addresses of NULL pointers, if Watch.Null
	// shadow stack that a handler needs at most, bytes, if it has a bound
	stack        int64
	stackBounded bool
}

// export is an exported function with the signature of a handler.
type export struct {
	module   *Module
	name     string
	slot     int    // in Module.handlers
	index    uint32 // of the function
	suspends bool   // it may reach an import that may block
	size     int64  // instructions that its first run fetches
	stack    int64  // shadow stack that it needs, bytes
	bounded  bool   // it needs no more
}

// Func is an exported handler of a module. The zero value is no handler.
type Func struct{ x *export }

// Valid reports whether f is a handler.
func (f Func) Valid() bool { return f.x != nil }

// Name returns the name of the export.
func (f Func) Name() string { return f.x.name }

// Module returns the module that exports f.
func (f Func) Module() *Module { return f.x.module }

// MaySuspend reports whether a call of f may be suspended: it may reach an
// import with Op.MayBlock.
func (f Func) MaySuspend() bool { return f.x.suspends }

// Block is a run of instructions that is charged at once.
type Block struct {
	Offset int // of the first instruction, bytes from the beginning of the module
	// parts of a cycle (Module.CycleParts), without the bytes of bulk
	// operations
	Cost int64
}

// FuncInfo describes a function of a module.
type FuncInfo struct {
	Index int
	// from the name section, otherwise from an export, otherwise "#" and the
	// index
	Name         string
	Exports      []string
	Signature    string
	Import       Op // OpNone: the module defines the function
	Offset       int
	Bytes        int   // of the body
	Instructions int   // before rewriting
	Blocks       int   // number of charged blocks
	Loops        int   // loop heads
	Cost         int64 // of all blocks together, parts of a cycle (Module.CycleParts)
	WorstBlock   Block
	Calls        int  // call instructions
	MaySuspend   bool // it may reach an import that may block
	Recursive    bool // may call itself, directly or through others
}

// ImportInfo describes an import that a module uses.
type ImportInfo struct {
	Op    Op
	Calls int // call instructions that name it
	// of a call, with the call instruction, parts of a cycle
	// (Module.CycleParts)
	Cost int64
}

// exportedMemory and initializer are names with a meaning in the ABI
// (docs/abi.md, Module).
const (
	exportedMemory = "memory"
	initializer    = "_initialize"
	stackPointer   = "__stack_pointer"
)

var handlerType = wasm.FuncType{Params: []wasm.ValueType{wasm.I32, wasm.I32}, Results: []wasm.ValueType{wasm.I32}}

// Load checks a module against the ABI and the limits of a device, and rewrites
// it so that it counts cycles. The name is for messages. The error is a
// *LoadError with module, function, offset and cause. Load is safe for hostile
// input: time and memory are linear in the length of the module. The module
// keeps no reference to binary.
func Load(name string, binary []byte, spec *Spec) (*Module, error) {
	return LoadServing(name, "", binary, spec)
}

// LoadServing is Load for a module in the place of a library's: the processors
// that serve the library serve it (Module.Library).
func LoadServing(name, library string, binary []byte, spec *Spec) (*Module, error) {
	watched := spec.Watch != (Watch{})
	key := moduleKey{fmt.Sprintf("%q %q %+v", name, library, *spec), sha256.Sum256(binary)}
	if m := recent.find(key); m != nil && !watched {
		return m, nil
	}
	m, err := load(name, binary, spec, MaxUnchecked, remByDivision)
	if err != nil {
		return nil, err
	}
	if m.library = library; !watched {
		recent.add(key, m)
	}
	return m, nil
}

func load(name string, binary []byte, spec *Spec, unchecked int, divide bool) (*Module, error) {
	if err := spec.Validate(); err != nil {
		return nil, &LoadError{Module: name, Offset: -1, Cause: "device: " + err.Error()}
	}
	m := &Module{name: visible.Line(name), spec: *spec}
	limits := wasm.Limits{CodeBytes: spec.MaxCodeBytes, Functions: spec.MaxFunctions, MemoryBytes: spec.MaxMemoryBytes, SIMD: spec.Costs.SIMD.has(), Custom: manifest.Section}
	var err error
	if m.wasm, err = wasm.Decode(append([]byte(nil), binary...), limits); err != nil {
		return nil, m.loadError(err)
	}
	if wrong := m.checkABI(); len(wrong) > 0 {
		return nil, m.loadError(wrong[0])
	}
	facts, err := wasm.Validate(m.wasm)
	if err != nil {
		return nil, m.loadError(err)
	}
	if err := m.findHandlers(); err != nil {
		return nil, m.loadError(err)
	}
	if err := m.readManifest(); err != nil {
		return nil, m.loadError(err)
	}
	m.rewrite(facts, unchecked, divide)
	m.measureStacks()
	if err := m.checkShape(facts); err != nil {
		return nil, m.loadError(err)
	}
	return m, nil
}

// watchTimes is the factor for the bounds of a module that is watched: the
// watching code is then most of it.
const watchTimes = 4

// checkShape refuses a module that would take an engine too much time or
// memory. It looks at the rewritten module, which is the one the engine
// compiles.
func (m *Module) checkShape(facts []wasm.Facts) error {
	everything := wasm.Limits{CodeBytes: math.MaxInt, Functions: math.MaxInt, MemoryBytes: math.MaxInt64, Rewritten: true, SIMD: true}
	rewritten, err := wasm.Decode(m.binary, everything)
	if err != nil {
		panic(fmt.Sprintf("hpu: module %s is broken by rewriting: %v", m.name, err))
	}
	times := int64(1)
	if w := &m.spec.Watch; w.tells() || w.Null {
		times = watchTimes
	}
	return wasm.CheckShape(rewritten, len(m.wasm.Imports), facts, times)
}

func (m *Module) loadError(err error) *LoadError {
	if already, ok := errors.AsType[*LoadError](err); ok {
		return already
	}
	var e *wasm.Error
	if !errors.As(err, &e) {
		return &LoadError{Module: m.name, Offset: -1, Cause: err.Error()}
	}
	out := &LoadError{Module: m.name, Offset: e.Offset, Cause: e.Cause}
	if e.Func >= 0 {
		out.Func = fmt.Sprintf("#%d", e.Func)
		if m.wasm != nil {
			out.Func = m.functionName(e.Func)
		}
	}
	return out
}

func (m *Module) functionName(fn int) string {
	if name := m.wasm.Names[uint32(fn)]; name != "" {
		return name
	}
	for _, e := range m.wasm.Exports {
		if e.Kind == wasm.ExportFunc && int(e.Index) == fn {
			return e.Name
		}
	}
	return fmt.Sprintf("#%d", fn)
}

// checkABI checks imports and memory. It returns every error (docs/abi.md,
// Module and Imports).
func (m *Module) checkABI() (wrong []*wasm.Error) {
	fail := func(offset int, format string, args ...any) {
		wrong = append(wrong, &wasm.Error{Func: -1, Offset: offset, Cause: fmt.Sprintf(format, args...)})
	}
	m.ops = make([]Op, len(m.wasm.Imports))
	for i, imp := range m.wasm.Imports {
		op, ok := OpByName(imp.Name)
		switch got := m.wasm.Types[imp.Type]; {
		case imp.Module != importModule:
			fail(imp.Offset, "import %s.%s: expected imports of module %s only", imp.Module, imp.Name, importModule)
		case !ok:
			fail(imp.Offset, "import %s.%s: there is no such import in ABI version 1", imp.Module, imp.Name)
		case !got.Equal(op.signature()):
			fail(imp.Offset, "import %s.%s has signature %v, expected %v", imp.Module, imp.Name, got, op.signature())
		}
		m.ops[i] = op
	}
	if !m.wasm.HasMemory {
		fail(-1, "the module defines no memory, expected one, exported as %s", exportedMemory)
		return wrong
	}
	for _, e := range m.wasm.Exports {
		if e.Kind == wasm.ExportMemory && e.Name == exportedMemory {
			return wrong
		}
	}
	fail(-1, "the memory is not exported as %s", exportedMemory)
	return wrong
}

func (m *Module) findHandlers() error {
	m.byName = make(map[string]*export)
	if m.wasm.Start >= 0 {
		m.prepare = append(m.prepare, uint32(m.wasm.Start))
	}
	for _, e := range m.wasm.Exports {
		if e.Kind != wasm.ExportFunc {
			continue
		}
		t := m.wasm.TypeOf(e.Index)
		switch {
		case e.Name == initializer:
			if len(t.Params)+len(t.Results) != 0 {
				return &wasm.Error{Func: -1, Offset: e.Offset, Cause: fmt.Sprintf("%s has signature %v, expected () -> ()", initializer, t)}
			}
			m.prepare = append(m.prepare, e.Index)
		case t.Equal(handlerType) && int(e.Index) >= len(m.wasm.Imports):
			x := &export{module: m, name: e.Name, slot: len(m.handlers), index: e.Index}
			m.handlers = append(m.handlers, x)
			m.byName[e.Name] = x
		}
	}
	if len(m.handlers) == 0 {
		return &wasm.Error{Func: -1, Offset: -1, Cause: fmt.Sprintf("no exported function has the signature of a handler, %v", handlerType)}
	}
	return nil
}

// readManifest reads the module's manifest, if it has one. The handlers in the
// manifest must exist as described.
func (m *Module) readManifest() error {
	c := m.wasm.Custom
	if c == nil {
		return nil
	}
	read, err := manifest.Parse(c.Bytes)
	if wrong, ok := errors.AsType[*manifest.Error](err); ok {
		at := c.Offset + wrong.Offset
		wrong.Offset = -1 // the offset is in front of the cause
		return &wasm.Error{Func: -1, Offset: at, Cause: wrong.Error()}
	}
	if err != nil {
		return err
	}
	for i := range read.Handlers {
		if name := read.Handlers[i].Export; m.byName[name] == nil {
			return &wasm.Error{Func: -1, Offset: c.Offset, Cause: fmt.Sprintf("manifest: handlers[%d].export: the module%s", i, m.exported(name))}
		}
	}
	m.manifest = read
	return nil
}

// inMemory reports whether all that a program of the module keeps from one
// handler to the next is in its memory, and nobody watches its initialisation.
func (m *Module) inMemory() bool {
	for i, g := range m.wasm.Globals {
		if g.Mutable && !(m.globals.hasStack && uint32(i) == m.globals.stack) {
			return false
		}
	}
	return len(m.globals.dropped) == 0 && m.spec.Watch == Watch{}
}

// Manifest is what a module says of itself: its handlers, their state and what
// they need.
type Manifest = manifest.Manifest

// Manifest is the manifest of the module; nil: it has none.
func (m *Module) Manifest() *Manifest { return m.manifest }

// Library is the name of the module's library: the one it serves for, the name
// in its manifest, or the name given to Load.
func (m *Module) Library() string {
	if m.library != "" {
		return m.library
	}
	if m.manifest != nil && m.manifest.Name != "" {
		return m.manifest.Name
	}
	return m.name
}

// findStack returns the global that is the shadow stack pointer (docs/abi.md,
// Module).
func (m *Module) findStack() (uint32, bool) {
	isPointer := func(i int) bool { g := m.wasm.Globals[i]; return g.Mutable && g.Type == wasm.I32 }
	for _, e := range m.wasm.Exports {
		if e.Kind == wasm.ExportGlobal && e.Name == stackPointer && isPointer(int(e.Index)) {
			return e.Index, true
		}
	}
	if sp := m.wasm.GlobalSP; sp >= 0 && isPointer(sp) {
		return uint32(sp), true
	}
	if len(m.wasm.Globals) == 0 || !isPointer(0) {
		return 0, false
	}
	// Linkers let the stack end at a multiple of 16 within the memory. A
	// counter or a flag begins with another value.
	top := m.wasm.Globals[0].Value
	return 0, top != 0 && top%16 == 0 && top <= uint64(m.wasm.Memory)*wasm.PageSize
}

// Export returns the handler with a name.
func (m *Module) Export(name string) (Func, error) {
	if x, ok := m.byName[name]; ok {
		return Func{x}, nil
	}
	return Func{}, fmt.Errorf("module %s%s", m.name, visible.Line(m.exported(name)))
}

// exported explains why there is no handler with a name.
func (m *Module) exported(name string) string {
	for _, e := range m.wasm.Exports {
		if e.Name == name && e.Kind == wasm.ExportFunc {
			return fmt.Sprintf(": export %s has signature %v, a handler has %v", name, m.wasm.TypeOf(e.Index), handlerType)
		}
	}
	names := make([]string, len(m.handlers))
	for i, x := range m.handlers {
		names[i] = x.name
	}
	return fmt.Sprintf(" exports no handler %s; it exports %s", name, strings.Join(names, ", "))
}
