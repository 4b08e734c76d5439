package hpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// acting is a module whose handler calls op with the arguments, of which n
// bytes at the address 0 are meant, again and again.
func acting(op Op, args ...int64) []byte {
	code := []byte{byte(wasm.OpLoop), 0x40}
	for i, p := range op.signature().Params {
		c := byte(wasm.OpI32Const)
		if p == wasm.I64 {
			c = byte(wasm.OpI64Const)
		}
		code = wasm.AppendS64(append(code, c), args[i])
	}
	code = append(code, byte(wasm.OpCall), 0)
	if len(op.signature().Results) > 0 {
		code = append(code, byte(wasm.OpDrop))
	}
	m := handlerModule(append(code, byte(wasm.OpBr), 0, byte(wasm.OpEnd), byte(wasm.OpI32Const), 0)...)
	m.imports = []Op{op}
	return m.bytes()
}

// TestImportsPay has handlers ask for the same thing for ever, with as many
// bytes as the memory has: the budget ends them after as many calls as the work
// of one allows, before the device is asked once too often, and their time
// contains the calls only.
func TestImportsPay(t *testing.T) {
	const budget, bytesOf = 100_000, 60_000
	for _, x := range []struct {
		op     Op
		args   []int64
		effort int64 // of one call
	}{
		{OpLog, []int64{0, bytesOf}, 100 + MaxLogBytes},
		{OpLog, []int64{0, 7}, 100 + 7},
		{OpDMAToHostNB, []int64{0, 0, 0, bytesOf}, 100 + bytesOf/64},
		{OpDMAFromHost, []int64{0, 0, 0, bytesOf}, 100 + bytesOf/64},
		{OpDMAToHostPosted, []int64{0, 0, 0, bytesOf}, 100 + bytesOf/64},
		{OpHostWrite, []int64{0, 0, 0}, 100},
		{OpHostWriteNB, []int64{0, 0, 0}, 100},
		{OpWait32, []int64{0, 1}, 100},
		{OpFlowID, nil, 100},
		{OpScratchpad, []int64{0}, 100},
		{OpMessageMemory, nil, 100},
		{OpPutFromDevice, []int64{0}, 300 + 2*bytesOf/64}, // payload and user header
		{OpGetFromDevice, []int64{0}, 300 + 2*bytesOf/64},
		{OpTimer, []int64{0, 0}, 300 + 2*bytesOf/64},
		{OpTimerAt, []int64{0, 0, 0}, 300 + 2*bytesOf/64},
		{OpNow, nil, 100},
		{OpExpiries, nil, 100},
		{OpPutFromHost, []int64{0}, 300}, // the NIC reads host memory in its own time
		{OpCTInc, []int64{0, 0, 0}, 100},
		{OpYield, nil, 100},
	} {
		onEngines(t, func(t *testing.T, e Engine) {
			calls := int64(0)
			dev := &testDevice{act: func(_ *Context, a *Action) (int64, bool) {
				calls++
				require.LessOrEqual(t, a.Len, uint32(bytesOf))
				return 0, false
			}}
			p := programOn(t, e, acting(x.op, x.args...), testSpec(), dev)
			le.PutUint64(p.Memory()[16:], bytesOf)
			le.PutUint32(p.Memory()[108:], bytesOf)
			c := p.Context(0)
			out := end(t, c, "h", 0, 0, budget)
			require.Equal(t, TrapBudget, out.Err.Kind)
			round := int64(11 + 31 + 9) // call, import, branch
			require.Equal(t, budget/(round+x.effort), calls, x.op)
			require.Equal(t, calls*round+round-9, out.Cycles)
			paid, place := calls*x.effort, fmt.Sprintf(", offset 0x%x", out.Err.Offset)
			require.Positive(t, out.Err.Offset)
			if out.Err.Op != OpNone { // the import itself was too much, not the instructions before it
				paid, place = paid+x.effort, fmt.Sprintf("%s: %v", place, x.op)
			}
			require.Equal(t, fmt.Sprintf("module test, function h%s: killed: budget exceeded: %d cycles charged and %d for the work of imports, %d allowed (hpu.max_cycles, hpu.max_cycles_per_byte)",
				place, out.Cycles, paid, budget), out.Err.Error())
		})
	}
}

// TestStraightLine runs code without loops and calls far over its budget. It
// ends within MaxUnchecked instructions.
func TestStraightLine(t *testing.T) {
	// 17 cycles, 4 instructions
	work := []byte{byte(wasm.OpI32Const), 3, byte(wasm.OpI32Const), 5, 0x6D, byte(wasm.OpDrop)}
	// 9 cycles, 2 instructions
	branch := []byte{byte(wasm.OpLocalGet), 0, byte(wasm.OpBrIf), 0}
	arms := append(append([]byte{byte(wasm.OpLocalGet), 1, byte(wasm.OpIf), 0x40}, bytes.Repeat([]byte{byte(wasm.OpNop)}, MaxUnchecked)...),
		byte(wasm.OpElse))
	arms = append(append(arms, work...), byte(wasm.OpEnd))
	// 29 + n/8 cycles
	fill := []byte{byte(wasm.OpI32Const), 0, byte(wasm.OpI32Const), 0, byte(wasm.OpLocalGet), 0, 0xFC, 0x0B, 0}
	const budget = 1000
	for _, x := range []struct {
		name  string
		code  []byte
		args  uint32
		least int64 // cycles
		most  int64
	}{
		// All of one block is charged at once, and nothing of it is done.
		{"one block", bytes.Repeat(work, 20_000), 0, 9 + 20_000*17, 9 + 20_000*17},
		{"blocks", bytes.Repeat(append(bytes.Clone(work), branch...), 5000), 0, budget, budget + (MaxUnchecked/6+1)*(17+9)},
		// The checks of arms that are not taken do not count.
		{"arms", bytes.Repeat(arms, 200), 0, budget, budget + (MaxUnchecked/8+2)*(17+9)},
		{"bulk", bytes.Repeat(fill, 200), 65536, 9 + 200*29, 9 + 200*29},
		// Of what a bulk operation asks for no more is taken than there is.
		{"one fill", fill, 65536, budget + 1, budget + 1},
		{"4 GiB", fill, 1<<32 - 1, budget + 1, budget + 1},
	} {
		onEngines(t, func(t *testing.T, e Engine) {
			// The first branch ends the block that is checked in any case.
			code := append([]byte{byte(wasm.OpBlock), 0x40, byte(wasm.OpLocalGet), 1, byte(wasm.OpBrIf), 0}, x.code...)
			p := programOn(t, e, handlerModule(append(code, byte(wasm.OpEnd), byte(wasm.OpI32Const), 0)...).bytes(), testSpec(), answering)
			out := end(t, p.Context(0), "h", x.args, 0, budget)
			require.Equal(t, TrapBudget, out.Err.Kind, x.name)
			require.LessOrEqual(t, x.least, out.Cycles, x.name)
			require.LessOrEqual(t, out.Cycles, x.most, x.name)
		})
	}
}

// TestCheckPlacement compares generated modules that check the budget at almost
// every block with the same as they are loaded: where the budget suffices
// nothing differs; where it does not, no more is charged.
func TestCheckPlacement(t *testing.T) {
	e, err := NewEngine("wazero")
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	killed, earlier := 0, 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		b := (&generator{pick: rng.IntN}).module()
		var ends [2][]Outcome
		for i, unchecked := range []int{MaxUnchecked, 3} {
			m, err := load("m", b, testSpec(), unchecked, remByDivision)
			require.NoError(t, err)
			img, err := e.Compile(m, 64)
			require.NoError(t, err)
			p, err := img.Instantiate("p", &testDevice{act: func(*Context, *Action) (int64, bool) { return 1, false }})
			require.NoError(t, err)
			for _, budget := range []int64{50, 200, 1000, 1 << 20} {
				ends[i] = append(ends[i], end(t, p.Context(0), "a", 100, 200, budget))
			}
			require.NoError(t, img.Close())
		}
		for k := range ends[0] {
			loose, strict := ends[0][k], ends[1][k]
			if strict.Err == nil || strict.Err.Kind != TrapBudget {
				require.Equal(t, loose.Cycles, strict.Cycles)
				require.Equal(t, loose.Code, strict.Code)
				continue
			}
			killed++
			require.LessOrEqual(t, strict.Cycles, loose.Cycles)
			if strict.Cycles < loose.Cycles {
				earlier++
			}
			if strict.Cycles < loose.Cycles || loose.Err == nil || loose.Err.Kind != TrapBudget {
				break // loose has gone further: the memory is another
			}
		}
	}
	require.Greater(t, killed, 50)
	require.Greater(t, earlier, 10)
}
