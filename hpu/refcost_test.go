package hpu

import (
	"math"
	"math/big"
	"strings"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// refBlock computes what a block costs from its instructions as a whole, in
// parts of a cycle: a second reading of CostTable and of README.md, "What a
// block costs", with values as trees and times as fractions.
type refBlock struct {
	t      *CostTable
	costs  map[string]InstrCost // by name of the instruction
	stack  []*refValue
	locals map[uint64]*refValue
	all    []*refValue
	again  bool
}

// refValue is the result of an instruction of the block, or an instruction that has none.
type refValue struct {
	in    *refInstr
	cost  InstrCost
	from  []*refValue // operands; nil: known from the beginning
	local int         // 1 + the local of the block before that it stands for
	con   bool        // a constant
	named bool        // stored in a local
	times map[int]int64
}

func newRefBlock(t *CostTable) *refBlock {
	b := &refBlock{t: t, costs: map[string]InstrCost{}}
	for names, c := range t.Instructions {
		for _, name := range strings.Fields(names) {
			b.costs[name] = c
		}
	}
	return b
}

func (b *refBlock) price(in *refInstr) InstrCost {
	class := in.Info.Class
	c := InstrCost{Cost: refCost(b.t, class)}
	c.Slots = min(c.Cost, 1)
	l := &b.t.Core.Latency
	c.Latency = map[wasm.Class]int64{
		wasm.ClassInt: l.Int, wasm.ClassIntMul: l.IntMul, wasm.ClassIntDiv: l.IntDiv, wasm.ClassFloat: l.Float,
		wasm.ClassFloatMul: l.FloatMul, wasm.ClassFloatDiv: l.FloatDiv, wasm.ClassFloatSqrt: l.FloatSqrt,
		wasm.ClassConvert: l.Convert, wasm.ClassLoad: l.Load, wasm.ClassSelect: l.Select, wasm.ClassGlobal: l.Load,
	}[class]
	if own, ok := b.costs[in.Info.Name]; ok {
		c = own
		if c.Slots == 0 {
			c.Slots = c.Cost
		}
	}
	if in.loops && in.Op == wasm.OpBrIf && b.t.LoopBranch > 0 {
		c = InstrCost{Cost: b.t.LoopBranch, Slots: 1}
	}
	if c.Latency == 0 {
		c.Latency = c.Cost
	}
	return c
}

func (b *refBlock) pop() *refValue {
	if len(b.stack) == 0 {
		return nil
	}
	v := b.stack[len(b.stack)-1]
	b.stack = b.stack[:len(b.stack)-1]
	return v
}

func (b *refBlock) read(in *refInstr) {
	v := &refValue{in: in, cost: b.price(in)}
	operands := map[wasm.Opcode]int{
		wasm.OpSelect: 3, wasm.OpDrop: 1, wasm.OpIf: 1, wasm.OpBrIf: 1, wasm.OpBrTable: 1, wasm.OpCallIndirect: 1, wasm.OpGlobalSet: 1,
		wasm.OpLocalSet: 1, wasm.OpLocalTee: 1,
	}[in.Op]
	pushes := in.Op == wasm.OpSelect || in.Op == wasm.OpGlobalGet
	if params, results, ok := strings.Cut(in.Info.Sig, ":"); ok {
		operands, pushes = len(params), results != ""
	}
	for range operands {
		v.from = append([]*refValue{b.pop()}, v.from...)
	}
	if in.Op != wasm.OpDrop {
		b.all = append(b.all, v)
	}
	switch in.Op {
	case wasm.OpLocalGet:
		if b.locals[in.Imm] == nil {
			b.locals[in.Imm] = &refValue{local: 1 + int(in.Imm)}
		}
		b.stack = append(b.stack, b.locals[in.Imm])
	case wasm.OpLocalSet, wasm.OpLocalTee:
		set := v.from[0]
		if set == nil {
			set = &refValue{}
		}
		set.named = true
		b.locals[in.Imm] = set
		if in.Op == wasm.OpLocalTee {
			b.stack = append(b.stack, set)
		}
	case wasm.OpI32Const, wasm.OpI64Const, wasm.OpF32Const, wasm.OpF64Const, wasm.OpMemorySize:
		v.con = true
		b.stack = append(b.stack, v)
	default:
		if pushes {
			b.stack = append(b.stack, v)
		}
	}
}

// fold takes the cost off instructions that become a part of the one that uses them.
func (b *refBlock) fold() {
	is := func(v *refValue, names ...string) bool {
		if v == nil || v.in == nil || v.named {
			return false
		}
		for _, n := range names {
			if v.in.Info.Name == n {
				return true
			}
		}
		return false
	}
	con := func(v *refValue) bool { return v != nil && v.con }
	c := &b.t.Core
	const compares = "i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u"
	for _, v := range b.all {
		name := v.in.Info.Name
		typ, access, _ := strings.Cut(name, ".")
		switch {
		case strings.HasPrefix(access, "load") || strings.HasPrefix(access, "store"):
			a := v.from[0]
			if !is(a, "i32.add") {
				break
			}
			offset := con(a.from[0]) || con(a.from[1])
			switch c.FoldAddress {
			case AddressIndex:
				if offset || v.in.Imm == 0 && typ[0] == 'i' {
					a.cost = InstrCost{}
				}
			case AddressOffset:
				if offset {
					a.cost = InstrCost{}
				}
			}
		case c.FoldMultiply && (typ == "f32" || typ == "f64") && (access == "add" || access == "sub"):
			for _, a := range []*refValue{v.from[1], v.from[0]} {
				if is(a, typ+".mul") {
					a.cost = InstrCost{}
					break
				}
			}
		case c.FoldShift && strings.Contains(" i32.add i32.sub i32.and i32.or i32.xor "+compares+" ", " "+name+" "):
			for _, a := range []*refValue{v.from[1], v.from[0]} {
				if is(a, "i32.shl", "i32.shr_s", "i32.shr_u", "i32.rotl", "i32.rotr") && con(a.from[1]) {
					a.cost = InstrCost{}
					break
				}
			}
		case c.FoldCompare && (name == "if" || name == "br_if") && is(v.from[0], strings.Fields(compares+" i32.eqz")...):
			v.from[0].cost = InstrCost{}
		}
	}
}

// unit returns the number of units that execute v, and which.
func (b *refBlock) unit(v *refValue) (string, int64) {
	c := &b.t.Core
	switch v.in.Info.Class {
	case wasm.ClassIntMul, wasm.ClassIntDiv:
		if c.Mul > 0 {
			return "mul", c.Mul
		}
	case wasm.ClassFloat, wasm.ClassFloatMul, wasm.ClassFloatDiv, wasm.ClassFloatSqrt, wasm.ClassConvert:
		return "float", c.Float
	case wasm.ClassLoad:
		return "load", c.Load
	case wasm.ClassStore:
		return "store", c.Store
	case wasm.ClassGlobal:
		if v.in.Op == wasm.OpGlobalGet {
			return "load", c.Load
		}
		return "store", c.Store
	case wasm.ClassBranch, wasm.ClassCall, wasm.ClassCallIndirect:
		if c.Branch > 0 {
			return "branch", c.Branch
		}
	}
	return "int", c.Int
}

// at returns when v can be used in a round, cycles.
func (b *refBlock) at(v *refValue, round int) int64 {
	switch {
	case v == nil:
		return 0
	case v.local > 0:
		set := b.locals[uint64(v.local-1)]
		if round == 0 || set == v {
			return 0
		}
		return b.at(set, round-1)
	case v.in == nil || v.con:
		return 0
	}
	if v.times == nil {
		v.times = map[int]int64{}
	}
	t, ok := v.times[round]
	if !ok {
		for _, from := range v.from {
			t = max(t, b.at(from, round))
		}
		t += v.cost.Latency
		v.times[round] = t
	}
	return t
}

// cost returns the cycles of a block.
func (b *refBlock) cost(code []refInstr) *big.Rat {
	b.stack, b.all, b.locals = nil, nil, map[uint64]*refValue{}
	for i := range code {
		b.read(&code[i])
	}
	b.fold()
	used := map[string]*big.Rat{"int": new(big.Rat), "fetch": new(big.Rat)}
	add := func(unit string, n, units int64) {
		if used[unit] == nil {
			used[unit] = new(big.Rat)
		}
		if units > 0 {
			used[unit].Add(used[unit], big.NewRat(n, units))
		}
	}
	c := &b.t.Core
	charge := func(unit string, units, cost, slots int64) {
		if c.Fetch == 0 {
			add("int", cost, 1)
			return
		}
		add(unit, cost, units)
		add("fetch", slots, c.Fetch)
	}
	moves := -b.t.Registers
	for _, v := range b.all {
		unit, n := b.unit(v)
		charge(unit, n, v.cost.Cost, v.cost.Slots)
		if name := v.in.Info.Name; strings.HasPrefix(name, "local.") || strings.HasSuffix(name, ".const") {
			moves++
		} else if v.in.Info.Class != wasm.ClassMove {
			moves -= b.t.Operands
		}
	}
	if moves > 0 && b.t.Move == 0 {
		charge("int", c.Int, moves*b.t.Spill, moves*b.t.Spill)
	}
	most := new(big.Rat)
	atLeast := func(r *big.Rat) {
		if r.Cmp(most) > 0 {
			most = r
		}
	}
	for _, r := range used {
		atLeast(r)
	}
	if c.Chain == ChainBlock {
		for _, v := range b.all {
			atLeast(new(big.Rat).SetInt64(b.at(v, 0)))
		}
	}
	if c.Chain == ChainLoop && b.again {
		for _, v := range b.locals {
			if v.local == 0 || b.locals[uint64(v.local-1)] != v {
				atLeast(big.NewRat(b.at(v, 23)-b.at(v, 11), 12))
			}
		}
	}
	return most
}

// price computes the costs of the blocks.
func (r *reference) price(f *refFunc) {
	b := newRefBlock(&r.spec.Costs)
	for first := 0; first < len(f.code); {
		last := first
		for !f.code[last].ends {
			last++
		}
		end := &f.code[last]
		b.again = end.loops && first > 0 && end.targets[0] == first-1
		cost := b.cost(f.code[first : last+1])
		parts := new(big.Rat).Mul(cost, new(big.Rat).SetInt64(r.parts))
		ceiling := new(big.Int).Div(new(big.Int).Add(parts.Num(), new(big.Int).Sub(parts.Denom(), big.NewInt(1))), parts.Denom())
		f.code[first].cost = ceiling.Int64() + r.calls(end)
		first = last + 1
	}
}

// cycles returns the cycles that have begun.
func (r *reference) cycles() int64 { return int64(math.Ceil(float64(r.used) / float64(r.parts))) }

// calls returns the cost of an import that in calls, parts of a cycle.
func (r *reference) calls(in *refInstr) int64 {
	if in.Op == wasm.OpCall && int(in.Imm) < len(r.ops) {
		return r.importCost(r.ops[in.Imm])
	}
	return 0
}

func (r *reference) importCost(op Op) int64 {
	if c, ok := r.spec.Costs.Imports[op.String()]; ok {
		return c * r.parts
	}
	return r.spec.Costs.Import * r.parts
}

func refCost(t *CostTable, class wasm.Class) int64 {
	return map[wasm.Class]int64{
		wasm.ClassMove: t.Move, wasm.ClassInt: t.Int, wasm.ClassIntMul: t.IntMul, wasm.ClassIntDiv: t.IntDiv,
		wasm.ClassFloat: t.Float, wasm.ClassFloatMul: t.FloatMul, wasm.ClassFloatDiv: t.FloatDiv, wasm.ClassFloatSqrt: t.FloatSqrt,
		wasm.ClassConvert: t.Convert, wasm.ClassLoad: t.Load, wasm.ClassStore: t.Store, wasm.ClassSelect: t.Select,
		wasm.ClassBranch: t.Branch, wasm.ClassCall: t.Call, wasm.ClassCallIndirect: t.CallIndirect, wasm.ClassGlobal: t.Global,
		wasm.ClassBulk: t.Bulk,
	}[class]
}
