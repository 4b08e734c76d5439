package hpu

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// rewrite analyses the calls, adds the metering and fills in the description of
// each function.
func (m *Module) rewrite(facts []wasm.Facts, unchecked int, divide bool) {
	w := m.wasm
	graph := newCallGraph(w, facts)
	var blocking []uint32
	for i, op := range m.ops {
		if op.MayBlock() {
			blocking = append(blocking, uint32(i))
		}
	}
	suspends := graph.reaching(blocking)
	m.weights = weights(w, facts, m.spec.MaxCallDepth)
	recursive, depth := graph.recursion(m.weights)
	// So long a chain of different functions would exhaust an engine's stack as
	// recursion does.
	all := depth > maxCallDepth
	counted := make([]int64, len(recursive))
	for i := len(w.Imports); i < len(counted); i++ {
		if recursive[i] || all {
			counted[i] = m.weights[i]
		}
	}
	r := &rewriter{
		m: w, ops: m.ops, prices: newPrices(&m.spec.Costs), bulkRate: m.spec.Costs.BulkBytesPerCycle, counted: counted, unchecked: unchecked, divide: divide, watch: m.spec.Watch,
		reports: reports{fn: uint32(len(w.Imports))},
	}
	r.callCosts = make([]int64, w.FuncCount())
	for i, op := range m.ops {
		r.callCosts[i] = m.spec.Costs.imported(op)
		_, whole := m.spec.Costs.whole(op)
		r.prices.whole = append(r.prices.whole, whole)
	}
	m.importCosts, m.levels = r.callCosts[:len(m.ops)], r.prices.hasLevels
	m.prices = r.prices
	r.globals = m.chooseGlobals(counted, facts)
	if m.spec.Watch.Null {
		// a module compiled by internal/build has its first data at NullBytes
		m.null = m.nullBytes(r.globals.hasStack || m.manifest != nil)
		r.null = m.null
	}
	m.describe(facts, suspends, recursive)
	var handlers []uint32
	for _, x := range m.handlers {
		x.suspends = suspends[x.index]
		handlers = append(handlers, x.index)
	}
	r.extent = extent{instrs: make([]int64, w.FuncCount()), callees: make([][]uint32, w.FuncCount())}
	m.binary = r.emit(facts, m.functions, distinct(slices.Clone(m.prepare)), distinct(handlers))
	m.hash = sha256.Sum256(m.binary)
	m.globals = r.globals
	for _, x := range m.handlers {
		x.size = r.extent.of(x.index)
	}
	m.places, m.placesEnd, m.codeAt, m.sites = slices.Clip(r.all), r.allEnd, r.codeAt, r.reports.sites
}

// weights returns how many calls an active call of each function counts as. The
// weight follows from the frame on an engine's stack, estimated from the values
// that live at once: parameters, locals, operands and arguments of calls. An
// engine such as wazero gives every value its own place when it spills, but it
// has a larger stack. So instructions weigh less.
func weights(w *wasm.Module, facts []wasm.Facts, most int) []int64 {
	out := make([]int64, w.FuncCount())
	for i := range w.Imports {
		out[i] = 1
	}
	for i := range facts {
		f, fn := &facts[i], len(w.Imports)+i
		values := int64(len(w.TypeOf(uint32(fn)).Params) + f.Height)
		for _, g := range w.Codes[i].Locals {
			values += int64(g.Count)
		}
		arguments := 0
		for _, callee := range f.Calls {
			arguments = max(arguments, len(w.TypeOf(callee).Params))
		}
		for _, t := range f.Indirect {
			arguments = max(arguments, len(w.Types[t].Params))
		}
		each := int64(8)
		if f.Vectors {
			each = vectorBytes
		}
		bytes := each*(values+int64(arguments)) + int64(f.Instructions)/4
		// one call is always possible
		out[fn] = min(max(1, (bytes+frameBytes-1)/frameBytes), int64(most))
	}
	return out
}

// chooseGlobals numbers the globals that are added behind the module's own
// globals.
func (m *Module) chooseGlobals(counted []int64, facts []wasm.Facts) (g globalSet) {
	g.stack, g.hasStack = m.findStack()
	for _, c := range counted {
		g.hasDepth = g.hasDepth || c > 0
	}
	next := uint32(len(m.wasm.Globals))
	g.remaining = next
	if g.hasStack {
		next++
		g.limit = next
	}
	if g.hasDepth {
		next++
		g.depth = next
	}
	if g.hasHPU = slices.Contains(m.ops, OpMyHPU); g.hasHPU {
		next++
		g.hpu = next
	}
	if g.hasLevels = m.levels; g.hasLevels {
		g.levels = next + 1
		next += numLevelRegs
	}
	g.dropped = make(map[uint32]uint32)
	for i := range facts {
		for _, segment := range facts[i].Dropped {
			if _, known := g.dropped[segment]; !known {
				next++
				g.dropped[segment] = next
			}
		}
	}
	return g
}

// distinct leaves each function once, in its first place.
func distinct(fns []uint32) []uint32 {
	seen := make(map[uint32]bool, len(fns))
	return slices.DeleteFunc(fns, func(fn uint32) bool {
		before := seen[fn]
		seen[fn] = true
		return before
	})
}

func (m *Module) describe(facts []wasm.Facts, suspends, recursive []bool) {
	w := m.wasm
	m.functions = make([]FuncInfo, w.FuncCount())
	for i := range m.functions {
		f := &m.functions[i]
		*f = FuncInfo{
			Index: i, Name: w.Names[uint32(i)], Signature: w.TypeOf(uint32(i)).String(),
			MaySuspend: suspends[i], Recursive: recursive[i],
		}
		if i < len(m.ops) {
			f.Import, f.Name, f.Offset = m.ops[i], m.ops[i].String(), w.Imports[i].Offset
			continue
		}
		code, fact := &w.Codes[i-len(m.ops)], &facts[i-len(m.ops)]
		f.Offset, f.Bytes = code.Offset, code.End-code.Offset
		f.Instructions, f.Calls = fact.Instructions, len(fact.Calls)+len(fact.Indirect)
	}
	for _, e := range w.Exports {
		if e.Kind == wasm.ExportFunc {
			f := &m.functions[e.Index]
			f.Exports = append(f.Exports, e.Name)
			if f.Name == "" {
				f.Name = e.Name
			}
		}
	}
	for i := range m.functions {
		if f := &m.functions[i]; f.Name == "" {
			f.Name = fmt.Sprintf("#%d", i)
		}
	}
	for i := range facts {
		for _, fn := range facts[i].Calls {
			if int(fn) < len(m.ops) {
				m.functions[fn].Calls++
			}
		}
	}
}

// Name returns the name given to Load.
func (m *Module) Name() string { return m.name }

// Functions describes all functions of the module by index, imports first.
func (m *Module) Functions() []FuncInfo { return append([]FuncInfo(nil), m.functions...) }

// Imports describes the imports of the module, in the module's order.
func (m *Module) Imports() []ImportInfo {
	out := make([]ImportInfo, len(m.ops))
	for i, op := range m.ops {
		b := block{p: m.prices, serial: m.spec.Costs.imported(op)}
		b.charge(&m.prices.ops[wasm.OpCall], 1)
		out[i] = ImportInfo{Op: op, Calls: m.functions[i].Calls, Cost: b.cost(false)}
	}
	return out
}

// CycleParts returns how many parts of a cycle the module counts in. The costs
// of blocks and imports are multiples of one part. It is 1 on a core that
// executes one instruction after the other.
func (m *Module) CycleParts() int64 { return m.prices.parts }

// Exports returns the handlers of the module, in the module's order.
func (m *Module) Exports() []Func {
	out := make([]Func, len(m.handlers))
	for i, x := range m.handlers {
		out[i] = Func{x}
	}
	return out
}

// Layout returns the memory map of a program of the module with hpuMemory bytes
// of HPU memory. The error names the limit of the device that forbids it.
func (m *Module) Layout(hpuMemory uint32) (Layout, error) {
	stack := int64(-1)
	if m.stackBounded {
		stack = m.stack
	}
	l, err := layoutOf(int64(m.wasm.Memory)*wasm.PageSize, hpuMemory, &m.spec, stack)
	if err != nil {
		return Layout{}, fmt.Errorf("module %s: %w", m.name, err)
	}
	return l, nil
}

// ShadowStack returns the index of the global that is the shadow stack pointer;
// ok is false if there is none.
func (m *Module) ShadowStack() (global int, ok bool) { return int(m.globals.stack), m.globals.hasStack }

// Rewritten returns the module that engines compile. It is for inspection and
// for tests of the rewriter.
func (m *Module) Rewritten() []byte { return append([]byte(nil), m.binary...) }
