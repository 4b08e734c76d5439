package hpu

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// answering is a device that blocks waits and answers everything else with 0.
var answering = &testDevice{act: func(_ *Context, a *Action) (int64, bool) { return 0, a.Op == OpDMAWait }}

// payload fills the packet buffer of c with n bytes and describes them in the argument record.
func payload(c *Context, n int) {
	mem := c.Program().Memory()
	for i := range n {
		mem[int(c.PacketAddr(n))+i] = byte(i)
	}
	le.PutUint32(mem[c.ArgsAddr():], c.PacketAddr(n))
	le.PutUint32(mem[c.ArgsAddr()+4:], uint32(n))
}

func benchmarkCall(b *testing.B, name string, n int) {
	spec := testSpec()
	spec.PacketBytes = max(spec.PacketBytes, n)
	p := newProgramOf(b, handlersWasm, spec, answering)
	c, f := p.Context(0), handler(b, p, name)
	payload(c, n)
	b.ReportAllocs()
	for b.Loop() {
		if c.Start(f, c.ArgsAddr(), 0, 1<<40) != Done || c.Outcome().Err != nil {
			b.Fatal(c.Outcome())
		}
	}
}

// BenchmarkCallSum256 is a whole handler call: sum the 256 bytes of a packet, one by one.
func BenchmarkCallSum256(b *testing.B) { benchmarkCall(b, "sum", 256) }

// BenchmarkCallXor256 sums 8 bytes at a time.
func BenchmarkCallXor256(b *testing.B) { benchmarkCall(b, "xor", 256) }

// BenchmarkCallEmpty is what a call costs without a handler in it.
func BenchmarkCallEmpty(b *testing.B) { benchmarkCall(b, "sum", 0) }

// BenchmarkMetering runs the tightest loop, 64 KiB byte by byte, with and
// without metering in turn, and reports the median of the ratios: other
// programs on the machine disturb both alike.
func BenchmarkMetering(b *testing.B) {
	const n = 65536
	spec := testSpec()
	spec.PacketBytes = n
	p := newProgramOf(b, handlersWasm, spec, answering)
	c, f := p.Context(0), handler(b, p, "sum")
	payload(c, n)
	plain := plainHandler(b, "sum", n)
	timed := func(f func()) float64 {
		start := time.Now()
		f()
		return float64(time.Since(start))
	}
	var ratios []float64
	for b.Loop() {
		without := timed(plain)
		with := timed(func() { c.Start(f, c.ArgsAddr(), 0, 1<<40) })
		ratios = append(ratios, with/without)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-unmetered")
}

// plainHandler returns a handler of the module as it was before the loader
// rewrote it, with n bytes to work on.
func plainHandler(b *testing.B, name string, n int) func() {
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	b.Cleanup(func() { require.NoError(b, rt.Close(ctx)) })
	host := rt.NewHostModuleBuilder(importModule)
	for op := OpNone + 1; op < NumOps; op++ {
		sig := op.signature()
		host.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), wazeroTypes(sig.Params), wazeroTypes(sig.Results)).Export(op.String())
	}
	_, err := host.Instantiate(ctx)
	require.NoError(b, err)
	mod, err := rt.Instantiate(ctx, handlersWasm)
	require.NoError(b, err)
	f := mod.ExportedFunction(name)
	pages, ok := mod.Memory().Grow(uint32(n)/65536 + 1)
	require.True(b, ok)
	mem, ok := mod.Memory().Read(0, mod.Memory().Size())
	require.True(b, ok)
	le.PutUint32(mem[64:], pages*65536)
	le.PutUint32(mem[68:], uint32(n))
	stack := make([]uint64, 2)
	return func() {
		stack[0], stack[1] = 64, 0
		if err := f.CallWithStack(ctx, stack); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSuspend is a handler that waits twice: start, two suspensions, two resumptions.
func BenchmarkSuspend(b *testing.B) {
	p := newProgramOf(b, handlersWasm, testSpec(), answering)
	c, f := p.Context(0), handler(b, p, "wait2")
	b.ReportAllocs()
	for b.Loop() {
		c.Start(f, 0, 0, 1<<40)
		c.Resume(1)
		if c.Resume(2) != Done || c.Outcome().Code != 12 {
			b.Fatal(c.Outcome())
		}
	}
}

// BenchmarkInstantiate makes and closes a program.
func BenchmarkInstantiate(b *testing.B) {
	m, err := Load("test", handlersWasm, testSpec())
	require.NoError(b, err)
	e, err := NewEngine("wazero")
	require.NoError(b, err)
	defer func() { require.NoError(b, e.Close()) }()
	img, err := e.Compile(m, 4096)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		p, err := img.Instantiate("owner", answering)
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
