package hpu

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// threeWide is a core that fetches three instructions a cycle: 2 integer units,
// 1 multiplier, 1 load, 1 store and 2 floating-point units; branches take an
// integer unit. Costs are counted in sixths.
func threeWide() CostTable {
	return CostTable{
		Int: 1, IntMul: 1, IntDiv: 12, Float: 1, FloatMul: 1, FloatDiv: 9, FloatSqrt: 33, Convert: 1, Load: 1, Store: 1, Select: 1,
		Branch: 1, Call: 2, CallIndirect: 4, Global: 1, Bulk: 1, BulkBytesPerCycle: 8, Import: 1, Registers: 16, Operands: 4, Spill: 1,
		Core: Core{
			Fetch: 3, Int: 2, Mul: 1, Load: 1, Store: 1, Float: 2, Chain: ChainLoop,
			Latency:     Latency{IntMul: 3, Load: 2, Float: 5, FloatMul: 4},
			FoldAddress: AddressIndex, FoldShift: true, FoldMultiply: true,
		},
		Instructions: map[string]InstrCost{"i64.add": {Cost: 2, Latency: 1}},
	}
}

// blockCost is what a block of instructions, "name immediate; ...", costs, in cycles as a fraction.
func blockCost(t *testing.T, table CostTable, again bool, code string) string {
	t.Helper()
	require.NoError(t, table.Validate())
	p := newPrices(&table)
	b := &block{p: p}
	b.begin(100)
	for text := range strings.SplitSeq(code, ";") {
		in := wasm.Instr{}
		name := ""
		_, _ = fmt.Sscan(text, &name, &in.Imm) // an instruction may have no immediate
		op, ok := wasm.OpcodeByName(name)
		require.True(t, ok, "%q", text)
		in.Op, in.Info = op, op.Info()
		b.add(&in, again && op == wasm.OpBrIf)
	}
	cost := b.cost(again)
	if cost%p.parts == 0 {
		return fmt.Sprint(cost / p.parts)
	}
	return fmt.Sprintf("%d/%d", cost, p.parts)
}

// The loop of a sum of words: load, add, add to the pointer, subtract from the counter, branch.
const sumLoop = "local.get 0; i32.load; local.get 1; i32.add; local.set 1; local.get 0; i32.const 4; i32.add; local.set 0;" +
	"local.get 2; i32.const -1; i32.add; local.tee 2; br_if 0"

func TestBlockOfAScalarCore(t *testing.T) {
	scalar := threeWide()
	scalar.Core = Core{}
	require.Equal(t, "5", blockCost(t, scalar, true, sumLoop))
	// In order, with loads whose result is there a cycle later: 1 + 1 and, with
	// a compiler that puts the other two additions behind the load, nothing. A
	// chain of two loads and an addition takes 2 + 2 + 1 though it is three
	// instructions.
	scalar.Core = Core{Chain: ChainBlock, Latency: Latency{Load: 2}}
	require.Equal(t, "5", blockCost(t, scalar, true, sumLoop))
	require.Equal(t, "5", blockCost(t, scalar, false, "local.get 0; i32.load; i32.load; i32.const 1; i32.add; local.set 3"))
	// The comparison becomes a part of the branch, unless its result is kept.
	scalar.Core = Core{FoldCompare: true}
	require.Equal(t, "1", blockCost(t, scalar, false, "local.get 0; local.get 1; i32.lt_u; br_if 0"))
	require.Equal(t, "2", blockCost(t, scalar, false, "local.get 0; local.get 1; i32.lt_u; local.tee 2; br_if 0"))
	scalar.LoopBranch = 3
	require.Equal(t, "3", blockCost(t, scalar, true, "local.get 0; local.get 1; i32.lt_u; br_if 0"))
}

func TestBlockOfAWideCore(t *testing.T) {
	// Two more operations on integers let the integer units decide: 2/2, with a third 3/2.
	const ors = "local.get 3; i32.or; local.get 3; i32.or; local.set 4"
	for _, c := range []struct {
		again      bool
		cost, code string
	}{
		// Three additions and the branch take two integer units 4/2 cycles;
		// five instructions would be fetched in 5/3.
		{true, "2", sumLoop},
		{false, "2", sumLoop},
		// Two instructions on a core of three are two thirds of a cycle, not one.
		{false, "4/6", "local.get 0; i32.const 1; i32.or; local.set 1; local.get 2; local.get 3; f32.add; local.set 2"},
		{false, "3/6", "local.get 0; i32.const 1; i32.or; local.set 1"},
		// Loads have one unit, as have multiplications; a division keeps one of
		// two units for nine cycles.
		{false, "2", "local.get 0; i32.load; local.set 1; local.get 0; i32.load 4; local.set 2"},
		{false, "2", "local.get 0; local.get 1; i32.mul; local.get 2; i32.mul; local.set 1"},
		{false, "27/6", "local.get 0; local.get 1; f32.div; local.set 1"},
		// two instructions and the branch
		{false, "9/6", "local.get 0; local.get 1; i64.add; local.set 0; br 0"},
		// Base plus index costs nothing beside a load; with an offset it does,
		// unless one of them is a constant; so it does for floating point, and
		// if a local keeps it.
		{false, "1", "local.get 0; local.get 1; i32.add; i32.load 0;" + ors},
		{false, "9/6", "local.get 0; local.get 1; i32.add; i32.load 4;" + ors},
		{false, "1", "local.get 0; i32.const 8; i32.add; i32.load 4;" + ors},
		{false, "9/6", "local.get 0; local.get 1; i32.add; f32.load 0;" + ors},
		{false, "1", "local.get 0; i32.const 8; i32.add; f32.load 0;" + ors},
		{false, "9/6", "local.get 0; local.get 1; i32.add; local.tee 2; i32.load 0;" + ors},
		{false, "1", "local.get 0; local.get 1; i32.add; local.get 2; i32.store 0; local.get 2;" + ors},
		// A shift by a constant costs nothing beside what uses it; one by a
		// variable does, and the second one.
		{false, "1", "local.get 0; local.get 1; i32.const 2; i32.shl; i32.add; i32.load 0;" + ors},
		{false, "9/6", "local.get 0; local.get 1; local.get 2; i32.shl; i32.add; i32.load 0;" + ors},
		// Of two products one becomes a part of their sum: 3/2, and two of two.
		{false, "1", "local.get 0; local.get 1; f64.mul; local.get 2; local.get 3; f64.mul; f64.sub; local.set 0"},
		{false, "9/6", "local.get 0; local.get 1; f64.mul; local.tee 4; local.get 2; local.get 3; f64.mul; local.tee 5; f64.sub; local.set 0"},
		{false, "1", "local.get 0; i32.const 2; i32.shl; local.get 1; i32.const 3; i32.rotl; i32.xor; local.set 5"},
	} {
		require.Equal(t, c.cost, blockCost(t, threeWide(), c.again, c.code), "%s", c.code)
	}
}

// A loop that is one block goes no faster than its values come round, however wide the core is.
func TestRecurrences(t *testing.T) {
	const chase = "local.get 0; i32.load; local.set 0; br 0"
	for _, c := range []struct{ cost, code string }{
		{"2", chase},
		// Two locals that exchange their values, one by a multiplication (3),
		// one by an addition (1): 4 in two rounds.
		{"2", "local.get 0; local.get 2; i32.mul; local.get 1; local.get 2; i32.add; local.set 0; local.set 1; br 0"},
		// Three of them: 7 in three rounds.
		{"14/6", "local.get 0; local.get 3; i32.mul; local.get 1; local.get 3; i32.mul; local.get 2; local.get 3; i32.or;" +
			"local.set 0; local.set 2; local.set 1; br 0"},
		// A sum of doubles waits for the addition before, not for the load.
		{"5", "local.get 1; local.get 0; f64.load; f64.add; local.set 1; local.get 0; i32.const 8; i32.add; local.set 0; br 0"},
		// A sum of 64-bit words takes two additions, of which the next round waits for one.
		{"2", "local.get 1; local.get 0; i64.load; i64.add; local.set 1; local.get 0; i32.const 8; i32.add; local.set 0; br 0"},
		// A multiplication of what is the same in every round holds nobody up.
		{"1", "local.get 0; local.get 1; i32.mul; local.set 2; br 0"},
	} {
		require.Equal(t, c.cost, blockCost(t, threeWide(), true, c.code), "%s", c.code)
	}
	require.Equal(t, "1", blockCost(t, threeWide(), false, chase))
}

// A block of 20,000 moves costs: 20,001 names and a constant, of which 16 and 4
// for the addition are free.
func TestMovesAreNotFreeWithoutLimit(t *testing.T) {
	const n = 20_000
	code := wasm.AppendIndexed(nil, wasm.OpLocalGet, 0)
	for range n / 2 {
		code = wasm.AppendIndexed(wasm.AppendIndexed(code, wasm.OpLocalSet, 1), wasm.OpLocalGet, 1)
	}
	code = append(code, byte(wasm.OpI32Const), 1, byte(wasm.OpI32Add))
	const extra = n + 2 - 16 - 4
	scalar := threeWide()
	scalar.Core = Core{}
	scalar.Move = 1
	moving := scalar // a table that charges every move charges none twice
	scalar.Move = 0
	wide := threeWide()
	dear := scalar
	dear.Spill = 7
	for _, c := range []struct {
		table  CostTable
		cycles int64
	}{
		{scalar, extra + 1}, {dear, 7*extra + 1}, {moving, n + 2 + 1 + 1}, // with the end of the function
		{wide, extra/2 + 1}, // two integer units, and a half that has begun
	} {
		spec := testSpec()
		spec.Costs = c.table
		p := newProgramOf(t, handlerModule(code...).bytes(), spec, answering)
		x := p.Context(0)
		require.Equal(t, Done, x.Start(handler(t, p, "h"), 41, 0, 1<<40))
		require.Equal(t, Outcome{Code: 42, Cycles: c.cycles}, x.Outcome())
	}
	table := threeWide()
	table.Spill = 0
	require.EqualError(t, table.Validate(), "spill: 0, expected 1 to 1000000")
	table.Move = 1
	require.NoError(t, table.Validate())
}

// Fractions of a cycle add up; what is seen of them is the cycles that have begun.
func TestFractionsOfCycles(t *testing.T) {
	table := threeWide()
	table.Core.Chain = ChainNone
	spec := testSpec()
	spec.Costs = table
	// A loop of one subtraction and one branch: two of two integer units, 1 a
	// round; the float addition makes no difference but to fetch, 3/3; with
	// another one it is 4/3.
	loop := func(additions int) []byte {
		code := []byte{byte(wasm.OpLoop), 0x40}
		for range additions {
			code = wasm.AppendIndexed(wasm.AppendIndexed(code, wasm.OpLocalGet, 2), wasm.OpLocalGet, 2)
			code = wasm.AppendIndexed(append(code, 0x92), wasm.OpLocalSet, 2)
		}
		code = wasm.AppendIndexed(code, wasm.OpLocalGet, 0)
		code = append(code, byte(wasm.OpI32Const), 1, byte(wasm.OpI32Sub))
		code = wasm.AppendIndexed(wasm.AppendIndexed(code, wasm.OpLocalTee, 0), wasm.OpBrIf, 0)
		return append(code, byte(wasm.OpEnd), byte(wasm.OpI32Const), 0)
	}
	// ceil(10 rounds of 1, 1, 4/3, 5/3, 6/3)
	for additions, want := range []int64{10, 10, 14, 17, 20} {
		m := handlerModule()
		m.bodies[0] = append([]byte{1, 1, byte(wasm.F32)}, loop(additions)...)
		p := newProgramOf(t, m.bytes(), spec, answering)
		x := p.Context(0)
		x.Start(handler(t, p, "h"), 10, 0, 1<<40)
		require.Equal(t, want, x.Cycles(), additions)
		x.Start(handler(t, p, "h"), 10, 0, want) // the budget is in cycles
		require.Nil(t, x.Outcome().Err)
		x.Start(handler(t, p, "h"), 10, 0, want-2)
		require.Equal(t, TrapBudget, x.Outcome().Err.Kind)
		// parts of a cycle would not fit into a register
		x.Start(handler(t, p, "h"), 10, 0, math.MaxInt64)
		require.Nil(t, x.Outcome().Err)
		require.Equal(t, want, x.Outcome().Cycles)
	}
}

func TestCostTableProblems(t *testing.T) {
	table := threeWide()
	table.Core.Int, table.Core.Mul, table.Core.Chain, table.Core.Latency.Load, table.Core.FoldAddress = 0, 9, "long", -1, "far"
	table.Instructions = map[string]InstrCost{"i64.add br": {}, "i64.sub i64.add": {Slots: -1}, "v128.add": {}}
	require.EqualError(t, table.Validate(), strings.Join([]string{
		"core.int: 0, expected 1 to 8",
		"core.mul: 9, expected 0 to 8",
		`core.chain: "long", expected "block", "loop" or nothing`,
		`core.fold_address: "far", expected "offset", "index" or nothing`,
		"core.latency.load: -1, expected 0 to 1000000",
		"instructions.i64.add br.cost: 0, expected 1 to 1000000", // a loop of it would cost nothing
		"instructions: i64.add is given twice",
		"instructions.i64.sub i64.add.slots: -1, expected 0 to 1000000",
		`instructions: no instruction "v128.add" in ABI version 1`,
	}, "\n"))
	table = threeWide()
	table.Core.Fetch = 0
	require.ErrorContains(t, table.Validate(), "core.int: 2, expected 0 to 0")
}
