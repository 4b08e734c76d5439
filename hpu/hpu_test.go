package hpu

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/handlers.wasm
var handlersWasm []byte

// testSpec has costs that differ from each other, so that a wrong class shows.
func testSpec() *Spec {
	return &Spec{
		Cores: 2, Contexts: 2, PacketBytes: 1024, StackBytes: 512, MaxCodeBytes: 1 << 18, MaxFunctions: 1000,
		MaxMemoryBytes: 1 << 20, MaxHPUMemoryBytes: 1 << 20, MaxCallDepth: 100,
		Costs: CostTable{
			Move: 0, Int: 1, IntMul: 3, IntDiv: 17, Float: 4, FloatMul: 5, FloatDiv: 19, FloatSqrt: 23, Convert: 6, Load: 2,
			Store: 7, Select: 8, Branch: 9, Call: 11, CallIndirect: 13, Global: 10, Bulk: 29, BulkBytesPerCycle: 8, Import: 31,
			Imports: map[string]int64{"dma_wait": 37},
		},
	}
}

var le = binary.LittleEndian

type testDevice struct {
	act func(c *Context, a *Action) (int64, bool)
}

func (d *testDevice) Act(c *Context, a *Action) (int64, bool) { return d.act(c, a) }

func newProgramOf(t testing.TB, wasm []byte, spec *Spec, dev Device) *Program {
	t.Helper()
	m, err := Load("test", wasm, spec)
	require.NoError(t, err)
	e, err := NewEngine("wazero")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	img, err := e.Compile(m, 4096)
	require.NoError(t, err)
	p, err := img.Instantiate("owner", dev)
	require.NoError(t, err)
	return p
}

func handler(t testing.TB, p *Program, name string) Func {
	f, err := p.Module().Export(name)
	require.NoError(t, err)
	return f
}

func TestSmoke(t *testing.T) {
	blocked := true
	dev := &testDevice{act: func(c *Context, a *Action) (int64, bool) { t.Log(a.Op, a.Cycles); return 7, blocked && a.Op.MayBlock() }}
	p := newProgramOf(t, handlersWasm, testSpec(), dev)
	c := p.Context(0)
	mem := p.Memory()
	require.True(t, bytes.HasPrefix(mem[16:], []byte("hello")))
	for i := range 256 {
		mem[int(c.PacketAddr())+i] = byte(i)
	}
	le.PutUint32(mem[c.ArgsAddr():], c.PacketAddr())
	le.PutUint32(mem[c.ArgsAddr()+4:], 256)
	require.Equal(t, Done, c.Start(handler(t, p, "sum"), c.ArgsAddr(), 0, 1e6))
	t.Log(c.Outcome())
	require.Equal(t, Code(255*128), c.Outcome().Code)
	for _, n := range []string{"trap", "load", "div", "forever", "deep", "gobble", "fib", "hpu", "count"} {
		arg := uint32(0xfffff0)
		if n == "fib" {
			arg = 10
		}
		require.Equal(t, Done, c.Start(handler(t, p, n), arg, 0, 1e6))
		t.Logf("%s %v", n, c.Outcome())
	}
	f := handler(t, p, "wait2")
	cs := []*Context{p.Context(0), p.Context(1), p.Context(2), p.Context(3)}
	for i, c := range cs {
		require.Equal(t, Blocked, c.Start(f, uint32(i), 0, 1e6))
	}
	for _, i := range []int{2, 0, 3, 1} {
		require.Equal(t, Blocked, cs[i].Resume(int64(i)))
	}
	for _, i := range []int{1, 2} {
		require.Equal(t, Done, cs[i].Resume(int64(i)))
		t.Log(cs[i].Outcome())
	}
	cs[0].Kill()
	t.Log(cs[0].Outcome())
	require.NoError(t, p.Close())
}
