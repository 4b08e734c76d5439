package hpu

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// The loop of a sum of vectors in place: two loads, an addition, a store, two
// pointers, a counter and the branch.
const vectorSum = "local.get 0; local.get 0; v128.load; local.get 1; v128.load; f32x4.add; v128.store;" +
	"local.get 0; i32.const 16; i32.add; local.set 0;" +
	"local.get 1; i32.const 16; i32.add; local.set 1;" +
	"local.get 2; i32.const -1; i32.add; local.tee 2; br_if 0"

// TestVectorCosts adds up blocks by hand.
func TestVectorCosts(t *testing.T) {
	table := threeWide()
	table.Core = Core{}
	table.SIMD = SIMD{AccessBytes: 16, Int: 1, Float: 2, FloatMul: 3, Load: 1, Store: 1, Shuffle: 1}
	// 2 + 2 + 1, three additions and the branch
	require.Equal(t, "9", blockCost(t, table, true, vectorSum))
	table.SIMD.AccessBytes = 8 // each of the three accesses is two
	require.Equal(t, "12", blockCost(t, table, true, vectorSum))
	// 8 bytes are one access, and so is a lane of them
	require.Equal(t, "2", blockCost(t, table, false, "local.get 0; v128.load8x8_s; local.get 0; v128.load64_splat; drop; drop"))
	require.Equal(t, "1", blockCost(t, table, false, "local.get 0; local.get 1; v128.store64_lane"))
	table.Instructions = map[string]InstrCost{"v128.load": {Cost: 7}} // in place of all that
	require.Equal(t, "22", blockCost(t, table, true, vectorSum))

	// Three instructions a cycle: 4 of 8 bytes, then 2 stores, an addition, 3 of
	// integers and the branch are 11 slots. One load at a time takes 4 cycles.
	table = threeWide()
	table.SIMD = SIMD{AccessBytes: 8, Float: 1, FloatMul: 1, Load: 1, Store: 1, Latency: SIMDLatency{Float: 5, Load: 3}}
	require.Equal(t, "4", blockCost(t, table, true, vectorSum))
	table.SIMD.AccessBytes = 16 // 8 slots
	require.Equal(t, "16/6", blockCost(t, table, true, vectorSum))
	// A sum in a register waits for itself.
	sum := "local.get 3; local.get 0; v128.load; f32x4.add; local.set 3;" + strings.SplitAfterN(vectorSum, "v128.store;", 2)[1]
	require.Equal(t, "5", blockCost(t, table, true, sum))
	// In order, the second word of a vector comes a cycle later: 3 + 1 + 5.
	table.Core.Chain = ChainBlock
	require.Equal(t, "8", blockCost(t, table, false, "local.get 3; local.get 0; v128.load; f32x4.add; local.set 3"))
	table.SIMD.AccessBytes = 8
	require.Equal(t, "9", blockCost(t, table, false, "local.get 3; local.get 0; v128.load; f32x4.add; local.set 3"))
	// A product is no part of a sum: the instruction that has both rounds once.
	table.Core.Chain = ChainNone
	require.Equal(t, "1", blockCost(t, table, false, "local.get 0; local.get 1; local.get 2; f32x4.mul; f32x4.add; local.set 3"))
	require.Equal(t, "3/6", blockCost(t, table, false, "local.get 0; local.get 1; local.get 2; f64.mul; f64.add; local.set 3"))
}

// TestVectorClasses counts an instruction of each class on each engine, with an
// access of 16 bytes as two of 8.
func TestVectorClasses(t *testing.T) {
	spec := vectorSpec()
	spec.Costs.Registers = 100
	s := &spec.Costs.SIMD
	for name, want := range map[string]int64{
		"i32x4.add": s.Int, "v128.bitselect": s.Int, "i8x16.shl": s.Int, "i32x4.dot_i16x8_s": s.IntMul, "f32x4.add": s.Float, "f64x2.lt": s.Float,
		"f32x4.pmin": s.Float, "f64x2.mul": s.FloatMul, "f32x4.div": s.FloatDiv, "f64x2.sqrt": s.FloatSqrt, "f64x2.promote_low_f32x4": s.Convert,
		"i8x16.swizzle": s.Shuffle, "i32x4.all_true": s.Shuffle, "f32x4.splat": s.Shuffle, "v128.load": 2 * s.Load, "v128.load32_zero": s.Load,
		"v128.load8x8_u": s.Load, "v128.store": 2 * s.Store,
	} {
		op, ok := wasm.OpcodeByName(name)
		require.True(t, ok, name)
		imm := []byte(nil)
		if op.Info().Accesses() {
			imm = []byte{0, 0}
		}
		x := vectorCase{op, imm}
		loads := map[byte]int64{'i': spec.Costs.Load, 'f': spec.Costs.Load, 'v': 2 * s.Load}
		params, result, _ := strings.Cut(op.Info().Sig, ":")
		for i := range len(params) {
			if i > 0 || !op.Info().Accesses() {
				want += loads[params[i]]
			}
		}
		want += map[string]int64{"i": spec.Costs.Store, "v": 2 * s.Store, "": 0}[result]
		onEngines(t, func(t *testing.T, e Engine) {
			p := programOn(t, e, vectorModule(x.body()), spec, answering)
			require.Equal(t, Outcome{Cycles: want}, end(t, p.Context(0), "h", operandsAt, loadedAt, 1e6), name)
		})
	}
}

// TestVectorsAtTheEnd has each load and store of SIMD reach the last byte of the
// memory, and trap one byte later, where observers see its width.
func TestVectorsAtTheEnd(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		for _, x := range vectorCases {
			info := x.op.Info()
			if !info.Accesses() || x.imm[1] != 0 {
				continue
			}
			seen := &accesses{}
			spec := vectorSpec()
			spec.Watch = Watch{Accesses: true, Observer: seen}
			p := programOn(t, e, vectorModule(x.body()), spec, answering)
			width := uint32(1) << info.Align
			last := uint32(len(p.Memory())) - width
			require.Nil(t, end(t, p.Context(0), "h", operandsAt, last, 1e6).Err, &x)
			require.Contains(t, seen.list, access{last, width, info.Stores()}, &x)
			require.Equal(t, TrapOutOfBounds, end(t, p.Context(0), "h", operandsAt, last+1, 1e6).Err.Kind, &x)
			require.NoError(t, p.Close())
		}
	})
}

// TestVectorsInOuterMemory charges what an access outside the clusters costs
// more for each word: 16 bytes are two words of 8 or one of 16.
func TestVectorsInOuterMemory(t *testing.T) {
	for word, words := range map[int64]int64{0: 2, 4: 4, 8: 2, 16: 1} {
		spec := vectorSpec()
		body := (&vectorCase{0xFD0B, []byte{0, 0}}).body() // a load and a store
		inner := newProgramOf(t, vectorModule(body), spec, answering)
		near := end(t, inner.Context(0), "h", operandsAt, loadedAt, 1e6).Cycles
		spec.Costs.Levels = Levels{OuterLoad: 1000, OuterStore: 3000, OtherLoad: 1, OtherStore: 1, WordBytes: word}
		p := newProgramOf(t, vectorModule(body), spec, answering)
		c := p.Context(0)
		c.Begins(handler(t, p, "h"), Scratchpads{}, false)
		require.Equal(t, near+words*4000, end(t, c, "h", operandsAt, loadedAt, 1e6).Cycles, word)
		lane := newProgramOf(t, vectorModule((&vectorCase{0xFD54, []byte{0, 0, 5}}).body()), spec, answering)
		c = lane.Context(0)
		c.Begins(handler(t, lane, "h"), Scratchpads{}, false)
		s := &spec.Costs.SIMD
		require.Equal(t, 2*s.Load+s.Load+2*s.Store+words*4000+1000, end(t, c, "h", operandsAt, loadedAt, 1e6).Cycles)
	}
}

// TestVectorsRefused are modules with SIMD that a device with SIMD refuses.
func TestVectorsRefused(t *testing.T) {
	constant := wasm.AppendV128(nil, 1, 2)
	global := func(mutable byte) []byte {
		return with(func(m *moduleOf) {
			m.globals = append(append([]byte{1, byte(wasm.V128), mutable}, constant...), byte(wasm.OpEnd))
			m.bodies[0] = []byte{0, byte(wasm.OpGlobalGet), 0, 0xFD, 0x1B, 2} // i32x4.extract_lane 2
		})
	}
	for want, b := range map[string][]byte{
		"function h, offset 0x2f: relaxed SIMD: not supported (instruction 0xfd 0x100)":    handlerModule(0xFD, 0x80, 2).bytes(),
		"function h, offset 0x2f: unknown instruction 0xfd 0x200":                          handlerModule(0xFD, 0x80, 4).bytes(),
		"function h, offset 0x31: i8x16.extract_lane_s: lane 16 of 16":                     handlerModule(0xFD, 0x15, 16).bytes(),
		"function h, offset 0x2f: v128.load8_lane: a value of type v128 is missing":        handlerModule(0xFD, 0x54, 0, 0, 0).bytes(),
		"function h, offset 0x33: v128.load8_lane: lane 16 of 16":                          handlerModule(0xFD, 0x54, 0, 0, 16).bytes(),
		"function h, offset 0x31: v128.load with alignment 2^5, at most 2^4":               handlerModule(0xFD, 0, 5, 0).bytes(),
		"function h, offset 0x31: unexpected end":                                          handlerModule(append(constant[:2:2], 0)...).bytes(),
		"offset 0x1e: variable global of type v128: not supported, its place is in memory": global(1),
		"function h, offset 0x2f: i32x4.add: a value of type v128 is missing":              handlerModule(0xFD, 0xAE, 1).bytes(),
		"function h, offset 0x2f: unknown instruction 0xfd9a":                              handlerModule(0xFD, 0x9A, 1).bytes(),
		"function h, offset 0x38: i8x16.shuffle: lane 32 of 32":                            handlerModule(0xFD, 13, 0, 1, 2, 3, 4, 5, 6, 32, 0, 0, 0, 0, 0, 0, 0, 0).bytes(),
		"function h, offset 0x41: end: value of type v128, expected i32":                   handlerModule(constant...).bytes(),
	} {
		_, err := Load("x", b, vectorSpec())
		require.EqualError(t, err, "module x, "+want)
	}
	p := newProgramOf(t, global(0), vectorSpec(), answering)
	require.Equal(t, Code(2), end(t, p.Context(0), "h", 0, 0, 1e6).Code)
}

// TestNoVectorsWithoutSIMD has the engine of a device without SIMD refuse it,
// even if the loader did not, and programs of both kinds run side by side.
func TestNoVectorsWithoutSIMD(t *testing.T) {
	binary := vectorModule((&vectorCase{0xFDE4, nil}).body())
	for _, check := range []func() error{
		func() error { _, err := Load("x", binary, testSpec()); return err },
		func() error { _, all := Check("x", binary, testSpec()); return all[0] },
	} {
		require.EqualError(t, check(), "module x, function h, offset 0x38: SIMD: this device has none (hpu.costs.simd.access_bytes)")
	}
	m, err := Load("x", binary, vectorSpec())
	require.NoError(t, err)
	shared, err := sharedWazero()
	require.NoError(t, err)
	_, err = shared.runtime.CompileModule(context.Background(), m.binary)
	require.ErrorContains(t, err, `feature "simd" is disabled`)

	onEngines(t, func(t *testing.T, e Engine) {
		p, q := programOn(t, e, binary, vectorSpec(), answering), programOn(t, e, handlersWasm, testSpec(), answering)
		wait := handler(t, q, "wait2")
		require.Equal(t, Blocked, q.Context(0).Start(wait, 0, 0, 1e6))
		require.Nil(t, end(t, p.Context(0), "h", operandsAt, loadedAt, 1e6).Err)
		require.Equal(t, Blocked, q.Context(0).Resume(1))
		require.Nil(t, end(t, p.Context(1), "h", operandsAt, loadedAt, 1e6).Err)
		require.Equal(t, Done, q.Context(0).Resume(2))
	})
}

func TestSIMDProblems(t *testing.T) {
	table := threeWide()
	table.SIMD = SIMD{AccessBytes: 4, Int: -1, Latency: SIMDLatency{Load: MaxCost + 1}}
	require.EqualError(t, table.Validate(), strings.Join([]string{
		"simd.access_bytes: 4, expected 8 or 16, or 0 for a core without SIMD",
		"simd.int: -1, expected 0 to 1000000",
		"simd.latency.load: 1000001, expected 0 to 1000000",
	}, "\n"))
	table.SIMD = SIMD{Float: 1} // nothing would use it
	table.Instructions = map[string]InstrCost{"v128.load i64.add": {Cost: 1}}
	require.EqualError(t, table.Validate(), strings.Join([]string{
		"simd.float: 1, expected 0 to 0",
		"instructions: v128.load is an instruction of SIMD, which the core lacks (simd.access_bytes)",
	}, "\n"))
}
