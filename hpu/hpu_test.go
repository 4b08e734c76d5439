package hpu

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/memory"
)

//go:embed testdata/handlers.wasm
var handlersWasm []byte

//go:embed testdata/imports.wasm
var importsWasm []byte

var le = binary.LittleEndian

// effortChild is the environment variable that makes the test program load and
// compile one module, as child does.
const effortChild = "SPINSIM_EFFORT_MODULE"

var child func(file string) error

func TestMain(m *testing.M) {
	if file := os.Getenv(effortChild); file != "" {
		if err := child(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	memory.CollectLate() // as the command does
	lazy.Many = 1        // a program loses its memory as soon as another needs one
	goleak.VerifyTestMain(m)
}

// testSpec has costs that differ from each other, so that a wrong class shows.
func testSpec() *Spec {
	return &Spec{
		Cores: 2, Contexts: 2, PacketBytes: 1024, StackBytes: 512, MaxCodeBytes: 1 << 18, MaxFunctions: 1000,
		MaxMemoryBytes: 1 << 20, MaxHPUMemoryBytes: 1 << 20, MaxCallDepth: 100,
		Costs: CostTable{
			Move: 0, Int: 1, IntMul: 3, IntDiv: 17, Float: 4, FloatMul: 5, FloatDiv: 19, FloatSqrt: 23, Convert: 6, Load: 2,
			Store: 7, Select: 8, Branch: 9, Call: 11, CallIndirect: 13, Global: 10, Bulk: 29, BulkBytesPerCycle: 8, Import: 31, Registers: 2, Operands: 3, Spill: 3,
			Imports: map[string]int64{"dma_wait": 37},
		},
	}
}

type testDevice struct {
	act func(c *Context, a *Action) (int64, bool)
}

func (d *testDevice) Act(c *Context, a *Action) (int64, bool) { return d.act(c, a) }

// engines are the names of the engines in the build.
var engines = []string{"wazero"}

// onEngines runs a test on every engine of the build.
func onEngines(t *testing.T, test func(t *testing.T, e Engine)) {
	for _, name := range engines {
		t.Run(name, func(t *testing.T) {
			e, err := NewEngine(name)
			require.NoError(t, err)
			require.Equal(t, name, e.Name())
			test(t, e)
			require.NoError(t, e.Close())
		})
	}
}

func programOn(t testing.TB, e Engine, wasm []byte, spec *Spec, dev Device) *Program {
	t.Helper()
	m, err := Load("test", wasm, spec)
	require.NoError(t, err)
	img, err := e.Compile(m, 4096)
	require.NoError(t, err)
	p, err := img.Instantiate("owner", dev)
	require.NoError(t, err)
	return p
}

func newProgramOf(t testing.TB, wasm []byte, spec *Spec, dev Device) *Program {
	e, err := NewEngine("wazero")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return programOn(t, e, wasm, spec, dev)
}

func handler(t testing.TB, p *Program, name string) Func {
	f, err := p.Module().Export(name)
	require.NoError(t, err)
	return f
}

// end runs a handler that does not block.
func end(t testing.TB, c *Context, name string, args, state uint32, budget int64) Outcome {
	require.Equal(t, Done, c.Start(handler(t, c.Program(), name), args, state, budget))
	return c.Outcome()
}

// TestSum adds up the cycles by hand: the entry with two loads (2+2), three
// additions or comparisons and a branch; 256 rounds of a load, two additions, a
// comparison and a branch.
func TestSum(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		c := programOn(t, e, handlersWasm, testSpec(), answering).Context(0)
		payload(c, 256)
		out := end(t, c, "sum", c.ArgsAddr(), 0, 1e6)
		require.Equal(t, Outcome{Code: 255 * 128, Cycles: (2 + 2 + 1 + 1 + 9) + 256*(2+1+1+1+9)}, out)
		require.Equal(t, out.Cycles, c.Cycles())
	})
}

// TestEnds runs handlers into every kind of trap: code, cycles and message are
// the same on all engines.
func TestEnds(t *testing.T) {
	const far = 0xFFFFF0
	for _, x := range []struct {
		name        string
		args, state uint32
		budget      int64
		want        string
	}{
		{"fib", 10, 0, 1e6, "code 55, 4782 cycles"},
		{"hpu", 0, 0, 1e6, "code 403, 88 cycles"},
		{"count", 0, 0, 1e6, "code 42, 43 cycles"},
		{"trap", 0, 0, 1e6, "code -1, 9 cycles, module test, function trap, offset 0x279: unreachable"},
		{"load", far, 0, 1e6, "code -2, 2 cycles, module test, function load, offset 0x27f: out of bounds memory access"},
		{"div", 7, 0, 1e6, "code -1, 17 cycles, module test, function div, offset 0x289: integer divide by zero"},
		{"div", 1 << 31, 0xFFFFFFFF, 1e6, "code -1, 17 cycles, module test, function div, offset 0x289: integer overflow"},
		{"forever", 0, 0, 1000, "code -1, 1008 cycles, module test, function forever, offset 0x272: killed: budget exceeded: 1008 cycles charged, 1000 allowed (hpu.max_cycles, hpu.max_cycles_per_byte)"},
		{"deep", 0, 0, 1e6, "code -1, 1200 cycles, module test, function deep, offset 0x28d: call depth exceeded (hpu.max_call_depth)"},
		{"deep", 0, 0, 500, "code -1, 504 cycles, module test, function deep, offset 0x28d: killed: budget exceeded: 504 cycles charged, 500 allowed (hpu.max_cycles, hpu.max_cycles_per_byte)"},
		{"gobble", 512, 0, 1e6, "code 0, 38 cycles"},
		{"gobble", 516, 0, 1e6, "code -2, 38 cycles, module test, function gobble, offset 0x29e: shadow stack overflow (hpu.stack_bytes)"},
		{"say", 0, 0xFFFFFFFF, 1e6, "code -2, 42 cycles, module test, function say, offset 0x245: log: out of bounds memory access: " +
			"addr: 4294967295 bytes at 0x0 in a memory of 131072 bytes"},
		{"atomics", 12, 0, 1e6, "code -2, 42 cycles, module test, function atomics, offset 0x221: fadd: misaligned address: 0xc is not a multiple of 8"},
	} {
		onEngines(t, func(t *testing.T, e Engine) {
			c := programOn(t, e, handlersWasm, testSpec(), answering).Context(3)
			for range 2 { // a trap leaves nothing behind
				out := end(t, c, x.name, x.args, x.state, x.budget)
				got := fmt.Sprintf("code %d, %d cycles", out.Code, out.Cycles)
				if out.Err != nil {
					got += ", " + out.Err.Error()
				}
				require.Equal(t, x.want, got)
			}
		})
	}
}

// TestSuspension has four handlers of one program wait, each with values in its
// own stack frame, and end in another order.
func TestSuspension(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		p := programOn(t, e, handlersWasm, testSpec(), answering)
		f := handler(t, p, "wait2")
		require.True(t, f.MaySuspend())
		require.False(t, handler(t, p, "sum").MaySuspend())
		var cs []*Context
		for i := range 4 {
			c := p.Context(i)
			c.User = i
			require.Equal(t, Blocked, c.Start(f, uint32(i), 0, 1e6))
			require.Equal(t, int64(20+1+7*0+11+37), c.Cycles()) // two globals, sub, call and import
			cs = append(cs, c)
		}
		for _, i := range []int{2, 0, 3, 1} {
			require.Equal(t, Blocked, cs[i].Resume(int64(i+1)))
		}
		for _, i := range []int{1, 3, 0, 2} {
			require.Equal(t, Done, cs[i].Resume(9))
			require.Equal(t, Code(10*(i+1)+9), cs[i].Outcome().Code)
			require.Equal(t, i, cs[i].User)
			require.Equal(t, i/2, cs[i].HPU())
		}
	})
}

// TestKill ends a suspended handler; the context and the program can be used afterwards.
func TestKill(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		p := programOn(t, e, handlersWasm, testSpec(), answering)
		c, f := p.Context(1), handler(t, p, "wait2")
		c.Kill() // nothing to kill
		require.Equal(t, Idle, c.Status())
		for range 3 {
			require.Equal(t, Blocked, c.Start(f, 0, 0, 1e6))
			c.Kill()
			require.Equal(t, Done, c.Status())
			require.Equal(t, TrapKilled, c.Outcome().Err.Kind)
			require.Contains(t, c.Outcome().Err.Error(), "killed")
			require.Equal(t, int64(69), c.Outcome().Cycles)
		}
		require.Equal(t, Code(55), end(t, c, "fib", 10, 0, 1e6).Code)
		require.Equal(t, Blocked, c.Start(f, 0, 0, 1e6))
		require.NoError(t, p.Close())
		require.Equal(t, TrapKilled, c.Outcome().Err.Kind)
		require.NoError(t, p.Close())
	})
}

// TestBudgetAcrossSuspension counts waiting for nothing: only executed cycles use the budget up.
func TestBudgetAcrossSuspension(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		p := programOn(t, e, handlersWasm, testSpec(), answering)
		c, other := p.Context(0), p.Context(1)
		require.Equal(t, Blocked, c.Start(handler(t, p, "wait2"), 0, 0, 400))
		require.Equal(t, TrapBudget, end(t, other, "forever", 0, 0, 100_000).Err.Kind)
		require.Equal(t, Blocked, c.Resume(1))
		require.Equal(t, Done, c.Resume(2))
		require.Equal(t, Outcome{Code: 12, Cycles: 150}, c.Outcome())
	})
}

// TestMemory checks the map of docs/abi.md: own memory, HPU memory, contexts;
// and that a reused memory is zero.
func TestMemory(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		m, err := Load("test", handlersWasm, testSpec())
		require.NoError(t, err)
		img, err := e.Compile(m, 1001)
		require.NoError(t, err)
		for range 3 {
			p, err := img.Instantiate("owner", answering)
			require.NoError(t, err)
			addr, size := p.HPUMemory()
			require.Equal(t, []uint32{65536, 1001}, []uint32{addr, size})
			l := p.Layout()
			require.Equal(t, Layout{
				Own: 65536, HPU: 65536, HPUBytes: 1001, Base: 65536 + 1008, Block: 256, Packets: 65536 + 4096, PacketBytes: 1024,
				Stacks: 65536 + 4096 + 4096, StackEach: 512, StackBytes: 512, Contexts: 4, Total: 2 * 65536,
			}, l)
			c := p.Context(3)
			require.Equal(t, l.Base+3*l.Block, c.ArgsAddr())
			require.Equal(t, c.ArgsAddr()+128, c.PacketAddr(128))
			require.Equal(t, l.Packets+3*1024, c.PacketAddr(129))
			mem := p.Memory()
			require.Equal(t, "hello", string(mem[16:21]))
			copy(mem[16:], "\x00\x00\x00\x00\x00")
			for i, b := range mem {
				require.Zero(t, b, i)
			}
			for i := range mem {
				mem[i] = 0xFF
			}
			require.NoError(t, p.Close())
		}
	})
}

// TestMisuse has programmer's mistakes panic with a message instead of corrupting another handler.
func TestMisuse(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		var nested func()
		dev := &testDevice{act: func(_ *Context, a *Action) (int64, bool) {
			if nested != nil {
				nested()
			}
			return 0, a.Op == OpDMAWait
		}}
		p := programOn(t, e, handlersWasm, testSpec(), dev)
		q := programOn(t, e, handlersWasm, testSpec(), dev)
		c, wait := p.Context(0), handler(t, p, "wait2")
		require.Equal(t, Blocked, c.Start(wait, 0, 0, 1e6))
		require.PanicsWithValue(t, "hpu: Start in context 0, which is blocked, of program owner (closed: false, executing: false)",
			func() { c.Start(wait, 0, 0, 1e6) })
		require.PanicsWithValue(t, "hpu: Resume of context 1, which is idle, of program owner (executing: false)",
			func() { p.Context(1).Resume(0) })
		require.PanicsWithValue(t, "hpu: Start of a function of another module", func() { p.Context(1).Start(Func{}, 0, 0, 1e6) })
		_ = q
		nested = func() { p.Context(1).Start(wait, 0, 0, 1e6) }
		require.Panics(t, func() { p.Context(2).Start(handler(t, p, "say"), 0, 0, 1e6) })
	})
}

func TestEngineNames(t *testing.T) {
	_, err := NewEngine("v8")
	require.EqualError(t, err, `no wasm engine "v8", expected wazero or wasmtime`)
}

// TestClosed has everything of a closed engine say so.
func TestClosed(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		p := programOn(t, e, handlersWasm, testSpec(), answering)
		c := p.Context(0)
		require.Equal(t, Blocked, c.Start(handler(t, p, "wait2"), 0, 0, 1e6))
		require.NoError(t, e.Close())
		require.NoError(t, e.Close())
		require.Equal(t, TrapKilled, c.Outcome().Err.Kind)
		_, err := e.Compile(p.Module(), 0)
		require.ErrorIs(t, err, ErrClosed)
		_, err = p.Image().Instantiate("again", answering)
		require.ErrorIs(t, err, ErrClosed)
	})
}
