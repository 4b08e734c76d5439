package hpu

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

func TestSpecValidate(t *testing.T) {
	require.NoError(t, testSpec().Validate())
	bad := testSpec()
	bad.Cores, bad.PacketBytes, bad.Costs.Branch, bad.Costs.Load = 0, 0, 0, MaxCost+1
	bad.Costs.Imports = map[string]int64{"teleport": 1, "ack": -1}
	require.EqualError(t, bad.Validate(), strings.Join([]string{
		"cores: 0, expected 1 to 4096",
		"packet_bytes: 0, expected 1 to 16777216",
		"costs.load: 1000001, expected 0 to 1000000",
		"costs.branch: 0, expected 1 to 1000000",
		"costs.imports.ack: -1, expected 0 to 1000000",
		`costs.imports: no import "teleport" in ABI version 1`,
	}, "\n"))
	_, err := Load("m", handlersWasm, bad)
	require.ErrorContains(t, err, "module m: device: cores: 0")
}

func TestExport(t *testing.T) {
	m, err := Load("m", handlersWasm, testSpec())
	require.NoError(t, err)
	f, err := m.Export("sum")
	require.NoError(t, err)
	require.Equal(t, "sum", f.Name())
	require.Same(t, m, f.Module())
	require.True(t, f.Valid())
	require.False(t, Func{}.Valid())
	_, err = m.Export("payload")
	require.EqualError(t, err, "module m exports no handler payload; it exports sum, xor, wait2, write, atomics, hpu, count, say, fib, "+
		"forever, trap, load, div, deep, gobble")
	b := handlerModule(0x41, 0)
	b.types, b.funcs, b.bodies = append(b.types, wasm.FuncType{}), append(b.funcs, 1), append(b.bodies, []byte{0})
	b.exports, b.nexports = []byte{2, 'g', 'o', 0, 1}, 1
	m, err = Load("m", b.bytes(), testSpec())
	require.NoError(t, err)
	_, err = m.Export("go")
	require.EqualError(t, err, "module m: export go has signature () -> (), a handler has (i32, i32) -> i32")
}

// TestInspect checks what is printed about a module against its text, testdata/handlers.wat.
func TestInspect(t *testing.T) {
	m, err := Load("m", handlersWasm, testSpec())
	require.NoError(t, err)
	require.Equal(t, "m", m.Name())
	require.Equal(t, ImportInfo{Op: OpDMAWait, Calls: 2, Cost: 11 + 37}, m.Imports()[0])
	require.Equal(t, ImportInfo{Op: OpDMAToHost, Calls: 1, Cost: 11 + 31}, m.Imports()[1])
	require.Len(t, m.Exports(), 15)
	byName := make(map[string]FuncInfo)
	for _, f := range m.Functions() {
		byName[f.Name] = f
	}
	sum := byName["sum"]
	require.Equal(t, []string{"sum"}, sum.Exports)
	require.Equal(t, "(i32, i32) -> i32", sum.Signature)
	// entry to br_if; the loop
	require.Equal(t, []int{2, 1, 0}, []int{sum.Blocks, sum.Loops, sum.Calls})
	require.Equal(t, int64(2+2+1+1+9), sum.WorstBlock.Cost)
	require.Equal(t, int64(2+2+1+1+9)+int64(2+1+1+1+9), sum.Cost)
	require.False(t, sum.MaySuspend || sum.Recursive)
	require.True(t, byName["wait2"].MaySuspend)
	require.True(t, byName["deep"].Recursive)
	require.False(t, byName["fib"].Recursive)
	require.True(t, byName["#16"].Recursive) // $fib
	require.Equal(t, OpDMAWait, byName["dma_wait"].Import)
	global, ok := m.ShadowStack()
	require.True(t, ok)
	require.Zero(t, global)
}

// TestFindStack looks for the shadow stack pointer in the order of docs/abi.md.
// A counter in global 0 is not taken for one.
func TestFindStack(t *testing.T) {
	type global struct {
		mutable byte
		value   int32
	}
	build := func(exported bool, names string, globals ...global) *Module {
		m := handlerModule(0x41, 0)
		m.globals = []byte{byte(len(globals))}
		for _, g := range globals {
			m.globals = append(wasm.AppendS64(append(m.globals, 0x7F, g.mutable, 0x41), int64(g.value)), 0x0B)
		}
		if exported {
			m.exports, m.nexports = append(wasm.AppendName(nil, "__stack_pointer"), wasm.ExportGlobal, 1), 1
		}
		b := m.bytes()
		if names != "" {
			b = wasm.AppendSection(b, 0, append(wasm.AppendName(nil, "name"), names...))
		}
		out, err := Load("m", b, testSpec())
		require.NoError(t, err)
		return out
	}
	index := func(m *Module) int {
		if i, ok := m.ShadowStack(); ok {
			return i
		}
		return -1
	}
	const named = "\x07\x12\x01\x01\x0f__stack_pointer" // global 1
	require.Equal(t, 1, index(build(true, "", global{1, 4096}, global{1, 8192})))
	require.Equal(t, 1, index(build(false, named, global{1, 4096}, global{1, 8192})))
	require.Equal(t, 0, index(build(false, "", global{1, 4096}, global{1, 8192})))
	// a broken name section
	require.Equal(t, 0, index(build(false, "\x07\x12\x01\x01\xff\xff", global{1, 65536})))
	require.Equal(t, -1, index(build(false, "", global{0, 4096}, global{1, 8192})))
	require.Equal(t, -1, index(build(false, "", global{1, 0})))
	require.Equal(t, -1, index(build(false, "", global{1, 17})))
	require.Equal(t, -1, index(build(false, "", global{1, 65552})))
}

// TestLoadKeepsNothing changes the caller's bytes after Load: the module does not.
func TestLoadKeepsNothing(t *testing.T) {
	b := bytes.Clone(handlersWasm)
	m, err := Load("m", b, testSpec())
	require.NoError(t, err)
	before := m.Rewritten()
	clear(b)
	require.Equal(t, before, m.Rewritten())
	require.Equal(t, "sum", m.Functions()[8].Name)
}

// TestSharedCode compiles a module once for all engines and sizes of HPU
// memory, and closes codes in any order.
func TestSharedCode(t *testing.T) {
	shared, err := sharedWazero()
	require.NoError(t, err)
	b := handlerModule(0x41, 42).bytes()
	var images []Image
	var engines []Engine
	for i := range 3 {
		m, err := Load("m", b, testSpec())
		require.NoError(t, err)
		e, err := NewEngine("wazero")
		require.NoError(t, err)
		img, err := e.Compile(m, uint32(i)*1000)
		require.NoError(t, err)
		engines, images = append(engines, e), append(images, img)
		require.Equal(t, i+1, shared.codes[m.hash].users)
	}
	require.NoError(t, images[1].Close())
	require.NoError(t, images[1].Close())
	for _, e := range engines {
		require.NoError(t, e.Close())
	}
	require.Zero(t, shared.codes[images[0].Module().hash].users)
	e, err := NewEngine("wazero")
	require.NoError(t, err)
	p := programOn(t, e, b, testSpec(), answering)
	require.Equal(t, 1, shared.codes[images[0].Module().hash].users)
	require.Equal(t, Code(42), end(t, p.Context(0), "h", 0, 0, 100).Code)
	for i := range idleCodes + 10 {
		m, err := Load("m", handlerModule(wasm.AppendS64([]byte{0x41}, int64(1000+i))...).bytes(), testSpec())
		require.NoError(t, err)
		img, err := e.Compile(m, 0)
		require.NoError(t, err)
		require.NoError(t, img.Close())
	}
	require.Len(t, shared.idle, idleCodes)
	require.NoError(t, e.Close())
}
