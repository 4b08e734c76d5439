package hpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// accesses is an Observer that keeps the loads and stores.
type accesses struct {
	sums
	list []access
}

type access struct {
	addr, n uint32
	store   bool
}

func (a *accesses) Access(_ *Context, _ int, addr, n uint32, store bool) {
	a.list = append(a.list, access{addr, n, store})
}

// TestAccesses watches loads, stores and bulk operations.
func TestAccesses(t *testing.T) {
	code := []byte{
		byte(wasm.OpI32Const), 8, 0x20, 0, 0x20, 1, 0x6A, 0x36, 2, 4, // i32.store offset=4 at 8
		byte(wasm.OpI32Const), 16, 0x29, 3, 0, 0x1A, // i64.load at 16
		// memory.copy
		byte(wasm.OpI32Const), 24, byte(wasm.OpI32Const), 32, byte(wasm.OpI32Const), 5, 0xFC, 10, 0, 0,
		// memory.fill
		byte(wasm.OpI32Const), 40, byte(wasm.OpI32Const), 1, byte(wasm.OpI32Const), 7, 0xFC, 11, 0,
		0x20, 0,
	}
	onEngines(t, func(t *testing.T, e Engine) {
		seen := &accesses{}
		spec := testSpec()
		spec.Watch = Watch{Accesses: true, Observer: seen}
		c := programOn(t, e, handlerModule(code...).bytes(), spec, answering).Context(1)
		out := end(t, c, "h", 5, 6, 1e6)
		require.Nil(t, out.Err)
		require.EqualValues(t, 5, out.Code)
		require.EqualValues(t, 11, le.Uint32(c.Program().Memory()[12:]))
		require.Equal(t, []access{{12, 4, true}, {16, 8, false}, {32, 5, false}, {24, 5, true}, {40, 7, true}}, seen.list)

		spec.Watch = Watch{}
		plain := end(t, programOn(t, e, handlerModule(code...).bytes(), spec, answering).Context(1), "h", 5, 6, 1e6)
		require.Equal(t, plain, out)
	})
}

// TestNull reads and writes where NULL leads to: from a field at NULL too, in
// every width, by bulk operations, and by an import.
func TestNull(t *testing.T) {
	data := wasm.AppendU32([]byte{1, 0, byte(wasm.OpI32Const)}, 0)
	data[3] = 0x80 // 1024, as a compiler would begin
	data = append(data, 8, byte(wasm.OpEnd), 1, 7)
	for name, x := range map[string]struct {
		code []byte
		null bool
	}{
		"load":          {[]byte{0x20, 0, 0x28, 2, 0}, true},
		"field":         {[]byte{0x20, 0, 0x28, 2, 60}, true},
		"store":         {[]byte{0x20, 0, 0x44, 0, 0, 0, 0, 0, 0, 0, 0, 0x39, 3, 8, 0x20, 0}, true},
		"vector":        {[]byte{0x20, 0, 0xFD, 0, 4, 16, 0xFD, 0x1B, 0}, true},
		"lane":          {append(wasm.AppendV128([]byte{0x20, 0}, 1, 2), 0xFD, 0x5B, 0, 8, 1, 0x20, 0), true},
		"copy to":       {[]byte{0x20, 0, 0x41, 0x80, 0x10, 0x41, 4, 0xFC, 10, 0, 0, 0x20, 0}, true},
		"copy from":     {[]byte{0x41, 0x80, 0x10, 0x20, 0, 0x41, 4, 0xFC, 10, 0, 0, 0x20, 0}, true},
		"fill":          {[]byte{0x20, 0, 0x41, 1, 0x41, 4, 0xFC, 11, 0, 0x20, 0}, true},
		"copy nothing":  {[]byte{0x20, 0, 0x20, 0, 0x41, 0, 0xFC, 10, 0, 0, 0x20, 0}, false},
		"behind":        {[]byte{0x20, 0, 0x28, 2, 0x80, 0x08}, false},
		"far from null": {[]byte{0x41, 0x80, 0x08, 0x28, 2, 0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, e Engine) {
				m := handlerModule(x.code...)
				m.data = data
				spec := vectorSpec()
				spec.Watch.Null = true
				out := end(t, programOn(t, e, m.bytes(), spec, answering).Context(0), "h", 0, 0, 1e6)
				if !x.null {
					require.Nil(t, out.Err)
					return
				}
				require.Equal(t, TrapNull, out.Err.Kind)
				require.Equal(t, Segv, out.Code)
				require.Positive(t, out.Err.Offset)
				m.data = nil // no compiler has made it: it may use all its memory
				require.Nil(t, end(t, programOn(t, e, m.bytes(), spec, answering).Context(0), "h", 0, 0, 1e6).Err)
			})
		})
	}
}

// BenchmarkNull sums packets with and without the check of addresses.
func BenchmarkNull(b *testing.B) {
	for _, x := range []struct {
		name string
		null bool
	}{{"without", false}, {"with", true}} {
		for _, handler := range []string{"sum", "xor"} {
			b.Run(handler+"/"+x.name, func(b *testing.B) {
				spec := testSpec()
				spec.PacketBytes, spec.Watch.Null = 4096, x.null
				p := newProgramOf(b, handlersWasm, spec, answering)
				p.module.checkNull(b, x.null)
				c, f := p.Context(0), exported(b, p, handler)
				payload(c, 4096)
				for b.Loop() {
					if c.Start(f, c.ArgsAddr(), 0, 1<<40) != Done || c.Outcome().Err != nil {
						b.Fatal(c.Outcome())
					}
				}
			})
		}
	}
}

func exported(b *testing.B, p *Program, name string) Func { return handler(b, p, name) }

func (m *Module) checkNull(b *testing.B, null bool) { require.Equal(b, null, m.null > 0) }
