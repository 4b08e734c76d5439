package hpu

import (
	"strings"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// unit is a part of a core that instructions share.
type unit uint8

const (
	unitInt unit = iota
	unitMul
	unitLoad
	unitStore
	unitFloat
	unitBranch
	unitFetch
	numUnits
)

// unitOf is the unit of a wide core that executes a class of instructions.
// Globals are loads and stores.
var unitOf = [...]unit{
	wasm.ClassMove: unitInt, wasm.ClassInt: unitInt, wasm.ClassIntMul: unitMul, wasm.ClassIntDiv: unitMul,
	wasm.ClassFloat: unitFloat, wasm.ClassFloatMul: unitFloat, wasm.ClassFloatDiv: unitFloat, wasm.ClassFloatSqrt: unitFloat,
	wasm.ClassConvert: unitFloat, wasm.ClassLoad: unitLoad, wasm.ClassStore: unitStore, wasm.ClassSelect: unitInt,
	wasm.ClassBranch: unitBranch, wasm.ClassCall: unitBranch, wasm.ClassCallIndirect: unitBranch, wasm.ClassGlobal: unitLoad,
	wasm.ClassBulk:      unitInt,
	wasm.ClassVectorInt: unitFloat, wasm.ClassVectorIntMul: unitFloat, wasm.ClassVectorFloat: unitFloat, wasm.ClassVectorFloatMul: unitFloat,
	wasm.ClassVectorFloatDiv: unitFloat, wasm.ClassVectorFloatSqrt: unitFloat, wasm.ClassVectorConvert: unitFloat, wasm.ClassVectorShuffle: unitFloat,
	wasm.ClassVectorLoad: unitLoad, wasm.ClassVectorStore: unitStore,
}

// price is the cost of an instruction on a core.
type price struct {
	unit    unit
	cost    int64 // cycles of the unit
	slots   int64 // of fetch
	latency int64 // cycles until its result can be used
}

// prices is a cost table by opcode, made once for a module.
type prices struct {
	parts int64 // of a cycle: the unit of costs
	// parts of the core's time for a cycle of work on one unit of a kind
	worth      [numUnits]int64
	ops        [wasm.NumOpcodes]price
	loopBranch price // for br_if to the head of a loop, if hasLoop
	hasLoop    bool
	moveFree   bool // moves cost nothing, up to a number
	registers  int64
	operands   int64
	spill      int64
	core       *Core
	values     bool // the cost depends on which instruction uses which value
	// imports whose whole cost the table gives, so that their call is free
	whole     []bool
	divBit    int64 // cycles for each leading bit of a divisor
	levels    Levels
	hasLevels bool
}

func newPrices(t *CostTable) *prices {
	c := &t.Core
	p := &prices{
		parts: 1, core: c, moveFree: t.Move == 0, registers: t.Registers, operands: t.Operands, spill: t.Spill,
		hasLoop: t.LoopBranch > 0, values: c.Chain != ChainNone || c.FoldAddress != AddressBase || c.FoldShift || c.FoldCompare || c.FoldMultiply || c.FoldRounds || c.LoadUse > 0,
		divBit: t.IntDivBit, levels: t.Levels,
	}
	l := t.Levels
	p.hasLevels = l.OuterLoad|l.OuterStore|l.OtherLoad|l.OtherStore > 0
	count := [numUnits]int64{c.Int, c.Mul, c.Load, c.Store, c.Float, c.Branch, c.Fetch}
	for _, n := range count {
		if n > 0 {
			p.parts = leastCommonMultiple(p.parts, n)
		}
	}
	for u, n := range count {
		if n > 0 {
			p.worth[u] = p.parts / n
		}
	}
	if c.Fetch == 0 {
		p.worth[unitInt] = p.parts // everything runs one after the other
	}
	costs, latency := classCosts(t), classLatencies(&c.Latency)
	for op := range wasm.Opcodes {
		info := op.Info()
		cost := InstrCost{Cost: costs[info.Class], Slots: min(costs[info.Class], 1), Latency: latency[info.Class]}
		if info.Class >= wasm.ClassVectorInt && t.SIMD.has() {
			cost = t.SIMD.cost(info)
		}
		p.ops[op.Index()] = p.price(op, cost)
	}
	p.loopBranch = p.price(wasm.OpBrIf, InstrCost{Cost: t.LoopBranch, Slots: 1})
	for names, cost := range t.Instructions { //lint:maporder each instruction stands in the table once
		for name := range strings.FieldsSeq(names) {
			op, _ := wasm.OpcodeByName(name)
			p.ops[op.Index()] = p.price(op, cost)
		}
	}
	return p
}

func (p *prices) price(op wasm.Opcode, c InstrCost) price {
	if c.Slots == 0 {
		c.Slots = c.Cost
	}
	if c.Latency == 0 {
		c.Latency = c.Cost
	}
	if p.core.Fetch == 0 {
		return price{unit: unitInt, cost: c.Cost, latency: c.Latency}
	}
	u := unitOf[op.Info().Class]
	switch {
	case op == wasm.OpGlobalSet:
		u = unitStore
	case u == unitMul && p.core.Mul == 0, u == unitBranch && p.core.Branch == 0:
		u = unitInt
	}
	return price{unit: u, cost: c.Cost, slots: c.Slots, latency: c.Latency}
}

func leastCommonMultiple(a, b int64) int64 {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// classCosts returns the costs of a table by class of instructions.
func classCosts(t *CostTable) (c [wasm.NumClasses]int64) {
	c[wasm.ClassMove] = t.Move
	c[wasm.ClassInt] = t.Int
	c[wasm.ClassIntMul] = t.IntMul
	c[wasm.ClassIntDiv] = t.IntDiv
	c[wasm.ClassFloat] = t.Float
	c[wasm.ClassFloatMul] = t.FloatMul
	c[wasm.ClassFloatDiv] = t.FloatDiv
	c[wasm.ClassFloatSqrt] = t.FloatSqrt
	c[wasm.ClassConvert] = t.Convert
	c[wasm.ClassLoad] = t.Load
	c[wasm.ClassStore] = t.Store
	c[wasm.ClassSelect] = t.Select
	c[wasm.ClassBranch] = t.Branch
	c[wasm.ClassCall] = t.Call
	c[wasm.ClassCallIndirect] = t.CallIndirect
	c[wasm.ClassGlobal] = t.Global
	c[wasm.ClassBulk] = t.Bulk
	return c
}

func classLatencies(l *Latency) (c [wasm.NumClasses]int64) {
	c[wasm.ClassInt] = l.Int
	c[wasm.ClassIntMul] = l.IntMul
	c[wasm.ClassIntDiv] = l.IntDiv
	c[wasm.ClassFloat] = l.Float
	c[wasm.ClassFloatMul] = l.FloatMul
	c[wasm.ClassFloatDiv] = l.FloatDiv
	c[wasm.ClassFloatSqrt] = l.FloatSqrt
	c[wasm.ClassConvert] = l.Convert
	c[wasm.ClassLoad] = l.Load
	c[wasm.ClassSelect] = l.Select
	c[wasm.ClassGlobal] = l.Load
	return c
}
