package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// Charges that depend on values, so that no block has them: the leading bits of
// a divisor, and the memory of an access. Their code exists only in modules for
// a device whose cost table asks for them.

// take appends the code that charges a number of cycles, which a local holds.
func (r *rewriter) take(b []byte, cycles uint32, offset int) []byte {
	b = wasm.AppendIndexed(r.budget.get(b), wasm.OpLocalGet, cycles)
	b = append(b, byte(wasm.OpI64ExtendI32))
	if parts := r.prices.parts; parts > 1 {
		b = append(wasm.AppendS64(append(b, byte(wasm.OpI64Const)), parts), byte(wasm.OpI64Mul))
	}
	b = r.budget.set(append(b, byte(wasm.OpI64Sub)))
	if r.watch.Blocks {
		b = r.reports.tell(b, site{kind: siteTaken, offset: offset}, -1, int64(cycles))
	}
	return b
}

// chargeDivisor charges a division or remainder of 32 bits for the leading bits
// of its divisor, which is on top of the stack.
func (r *rewriter) chargeDivisor(in *wasm.Instr) {
	if r.prices.divBit == 0 || in.Op < wasm.OpI32DivS || in.Op > wasm.OpI32RemU {
		return
	}
	divisor, cycles := r.temps.get('v', wasm.I32), r.temps.get('c', wasm.I32)
	b := wasm.AppendIndexed(r.block, wasm.OpLocalTee, divisor)
	b = wasm.AppendIndexed(b, wasm.OpLocalGet, divisor)
	if in.Op == wasm.OpI32DivS || in.Op == wasm.OpI32RemS { // ones of a negative number become zeros
		b = append(wasm.AppendIndexed(b, wasm.OpLocalGet, divisor), byte(wasm.OpI32Const), 31, byte(wasm.OpI32ShrS), byte(wasm.OpI32Xor))
	}
	b = wasm.AppendS64(append(b, byte(wasm.OpI32Clz), byte(wasm.OpI32Const)), r.prices.divBit)
	b = wasm.AppendIndexed(append(b, byte(wasm.OpI32Mul)), wasm.OpLocalSet, cycles)
	r.block = r.take(b, cycles, in.Offset)
}

// chargeLevel charges a load or store, whose operands are on the stack, if its
// address is not in memory of the handler's own cluster.
func (r *rewriter) chargeLevel(in *wasm.Instr) {
	if !r.prices.hasLevels {
		return
	}
	l := &r.prices.levels
	word := l.WordBytes
	if word == 0 {
		word = 8
	}
	words := (int64(1)<<in.Info.Align + word - 1) / word
	outer, other := l.OuterLoad*words, l.OtherLoad*words
	addr, cycles, value := r.temps.get('l', wasm.I32), r.temps.get('c', wasm.I32), uint32(0)
	if in.Info.Stores() {
		outer, other = l.OuterStore*words, l.OtherStore*words
	}
	b, above := r.block, in.Info.Above()
	if above != 0 {
		value = r.temps.get('V', above)
		b = wasm.AppendIndexed(b, wasm.OpLocalSet, value)
	}
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalTee, addr), wasm.OpLocalGet, addr)
	b = append(wasm.AppendS64(append(b, byte(wasm.OpI32Const)), int64(int32(uint32(in.Imm)))), byte(wasm.OpI32Add))
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalTee, addr), wasm.OpGlobalGet, r.globals.level(regOuter))
	b = append(b, byte(wasm.OpI32LtU), byte(wasm.OpIf), 0x40)
	b = append(r.globals.outside(b, addr, regOwn, regOwnBytes), byte(wasm.OpIf), 0x40)
	b = wasm.AppendS64(append(b, byte(wasm.OpI32Const)), outer)
	b = wasm.AppendS64(append(b, byte(wasm.OpI32Const)), other)
	b = append(r.globals.outside(b, addr, regPads, regPadsBytes), byte(wasm.OpSelect))
	b = r.take(wasm.AppendIndexed(b, wasm.OpLocalSet, cycles), cycles, in.Offset)
	if b = append(b, byte(wasm.OpEnd), byte(wasm.OpEnd)); above != 0 {
		b = wasm.AppendIndexed(b, wasm.OpLocalGet, value)
	}
	r.block = b
}

// outside appends the code that tells whether the address in a local is outside
// a range.
func (g *globalSet) outside(b []byte, addr uint32, from, bytes reg) []byte {
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalGet, addr), wasm.OpGlobalGet, g.level(from))
	return append(wasm.AppendIndexed(append(b, byte(wasm.OpI32Sub)), wasm.OpGlobalGet, g.level(bytes)), byte(wasm.OpI32GeU))
}

// level is the global of a register of the memories.
func (g *globalSet) level(which reg) uint32 { return g.levels + uint32(which-regOuter) }

// extent counts the code of functions, outside what the runtime does.
type extent struct {
	instrs  []int64    // of each function: instructions of the core
	callees [][]uint32 // of each function
	fn      int        // the function being rewritten
	aside   bool       // between runtime_begin and runtime_end
}

// block counts the instructions of a block.
func (e *extent) block(instrs int64) {
	if !e.aside {
		e.instrs[e.fn] += instrs
	}
}

// calls notes a call. ops are the module's imports.
func (e *extent) calls(in *wasm.Instr, ops []Op) {
	switch {
	case in.Op != wasm.OpCall:
	case in.Imm >= uint64(len(ops)):
		if !e.aside {
			e.callees[e.fn] = append(e.callees[e.fn], uint32(in.Imm))
		}
	case ops[in.Imm] == OpRuntimeBegin:
		e.aside = true
	case ops[in.Imm] == OpRuntimeEnd:
		e.aside = false
	}
}

// of returns how many instructions a function and its callees have.
func (e *extent) of(fn uint32) (instrs int64) {
	seen := map[uint32]bool{fn: true}
	for queue := []uint32{fn}; len(queue) > 0; queue = queue[1:] {
		instrs += e.instrs[queue[0]]
		for _, callee := range e.callees[queue[0]] {
			if !seen[callee] {
				seen[callee] = true
				queue = append(queue, callee)
			}
		}
	}
	return instrs
}

// Scratchpads are the HPU memory of all clusters, which the next handler of a
// context may use: Each bytes for each cluster, from an address of the program's
// memory. The zero value is none.
type Scratchpads struct{ At, Each uint32 }

// Begins describes the next handler of the context, as far as its cost depends
// on it: the memories of clusters, and whether its cluster runs it for the first
// time. A
// device need not call it unless its cost table has Levels or Misses.
func (c *Context) Begins(f Func, pads Scratchpads, first bool) {
	m := c.program.module
	c.cold = 0
	if first && m.spec.Costs.Misses.Line > 0 {
		c.cold = f.x.size
	}
	if !m.levels {
		return
	}
	in := c.program.inst
	in.set(c, regOuter, uint64(c.program.image.layout.Base))
	in.set(c, regOwn, uint64(pads.At+uint32(c.cluster)*pads.Each))
	in.set(c, regOwnBytes, uint64(pads.Each))
	in.set(c, regPads, uint64(pads.At))
	in.set(c, regPadsBytes, uint64(pads.Each)*uint64(c.clusters))
}

// missed is the time for fetching the code of a run's first n cycles.
func (c *Context) missed(n int64) int64 {
	m := &c.program.module.spec.Costs.Misses
	return (min(n, c.cold) + m.LineInstructions - 1) / m.LineInstructions * m.Line
}

// runtime follows what a device does in hardware, if it does. An import that the
// handler calls meanwhile takes its own time.
func (c *Context) runtime(op Op) {
	m := c.program.module
	switch {
	case !m.spec.Costs.HardwareRuntime:
	case op == OpRuntimeBegin:
		if !c.aside {
			c.aside, c.before = true, c.left
		}
		if c.effort == 0 { // the first import: the frame of the exported function is the runtime's, too
			c.before = c.budget
		}
	case op == OpRuntimeEnd:
		c.resumes()
	case c.aside && !descriptive(op):
		c.before -= m.spec.Costs.imported(op) * m.prices.parts
	}
}

// resumes ends what the device does in hardware: it used budget, but no time.
func (c *Context) resumes() {
	if !c.aside {
		return
	}
	skipped := c.before - c.left
	c.aside = false
	c.budget -= skipped
	c.effort += skipped / c.program.module.prices.parts
}

// descriptive reports whether an import only reads a descriptor, or waits.
func descriptive(op Op) bool {
	switch op {
	case OpNumHPUs, OpMyHPU, OpCycles, OpMyCluster, OpNumClusters, OpFlowID, OpScratchpad, OpMessageMemory, OpDMAWait:
		return true
	}
	return false
}
