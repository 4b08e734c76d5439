// Package wasmtest runs compiled handlers on the device of package spintest, so
// that one test checks both a handler's source and its committed module.
package wasmtest

import (
	"context"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

// Addresses in the module's one page, behind its stack and data.
const (
	recordAt = 0x2000
	packetAt = 0x3000
	stateAt  = 0x5000
	pageSize = 0x10000
)

// Names are the handlers of a match entry by their names in a module; "": none.
type Names struct{ Header, Payload, Completion string }

// machine is an instance of a module with d as its device.
type machine struct {
	t      testing.TB
	d      *spintest.Device
	module api.Module
	memory []byte
}

// Handlers returns the named handlers of a module on d. The state is copied into the module's
// memory, with extra bytes behind it, and back for each call.
func Handlers[S any](t testing.TB, d *spintest.Device, wasm []byte, names Names, extra int) spintest.Handlers[S] {
	return of[S](load(t, d, wasm), names, extra)
}

// Entries is Handlers for several match entries that share the state. The names
// in entries are arbitrary.
func Entries[S any](t testing.TB, d *spintest.Device, wasm []byte, entries map[string]Names, extra int) map[string]spintest.Handlers[S] {
	m := load(t, d, wasm)
	all := make(map[string]spintest.Handlers[S], len(entries))
	for name, names := range entries { //lint:maporder a map is made of a map
		all[name] = of[S](m, names, extra)
	}
	return all
}

func of[S any](m *machine, names Names, extra int) spintest.Handlers[S] {
	var h spintest.Handlers[S]
	if f := m.function(names.Header); f != nil {
		h.Header = func(record *spin.Header, s *S) spin.Code {
			r := *record
			copy(m.memory[packetAt:], record.UserHeader())
			r.UserHdr = packetAt
			return call(m, f, &r, s, extra)
		}
	}
	if f := m.function(names.Payload); f != nil {
		h.Payload = func(record *spin.Payload, s *S) spin.Code {
			r := *record
			copy(m.memory[packetAt:], record.Bytes())
			r.Base = packetAt
			return call(m, f, &r, s, extra)
		}
	}
	if f := m.function(names.Completion); f != nil {
		h.Completion = func(record *spin.Completion, s *S) spin.Code { return call(m, f, record, s, extra) }
	}
	return h
}

func load(t testing.TB, d *spintest.Device, wasm []byte) *machine {
	ctx := context.Background()
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { require.NoError(t, runtime.Close(ctx)) })
	m := &machine{t: t, d: d}
	m.imports(ctx, runtime)
	module, err := runtime.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	require.NoError(t, err)
	require.Equal(t, uint32(pageSize), module.Memory().Size())
	m.module = module
	m.memory, _ = module.Memory().Read(0, pageSize)
	d.Map(0, m.memory)
	return m
}

func (m *machine) function(name string) api.Function {
	if name == "" {
		return nil
	}
	f := m.module.ExportedFunction(name)
	require.NotNil(m.t, f, name)
	i32 := api.ValueTypeI32
	require.Equal(m.t, []api.ValueType{i32, i32}, f.Definition().ParamTypes(), name)
	require.Equal(m.t, []api.ValueType{i32}, f.Definition().ResultTypes(), name)
	return f
}

func call[R, S any](m *machine, f api.Function, record *R, s *S, extra int) spin.Code {
	state := unsafe.Slice((*byte)(unsafe.Pointer(s)), int(unsafe.Sizeof(*s))+extra)
	require.LessOrEqual(m.t, stateAt+len(state), pageSize)
	copy(m.memory[recordAt:], unsafe.Slice((*byte)(unsafe.Pointer(record)), unsafe.Sizeof(*record)))
	copy(m.memory[stateAt:], state)
	results, err := f.Call(context.Background(), recordAt, stateAt)
	if err != nil {
		panic(err) // spintest turns it into Segv, as a device does
	}
	copy(state, m.memory[stateAt:])
	return spin.Code(int32(results[0]))
}

// word returns the 8 bytes at an address.
func (m *machine) word(at uint32) *uint64 { return (*uint64)(unsafe.Pointer(&m.memory[at])) }

func (m *machine) act(a *spin.Action) int32 { return int32(m.d.Act(a)) }

// imports offers the imports that the handlers of this repository use.
func (m *machine) imports(ctx context.Context, runtime wazero.Runtime) {
	host := runtime.NewHostModuleBuilder("spin")
	export := func(name string, f any) { host.NewFunctionBuilder().WithFunc(f).Export(name) }
	for _, name := range []string{"dma_to_host", "dma_from_host", "dma_to_host_nb", "dma_from_host_nb"} {
		export(name, func(space uint32, offset uint64, local, n uint32) int32 {
			return m.act(&spin.Action{Name: name, Space: spin.Space(space), Offset: offset, Mem: m.memory[local : local+n]})
		})
	}
	for _, name := range []string{"put_from_host", "put_from_device", "get_from_host", "atomic_from_device", "to_self"} {
		export(name, func(op uint32) int32 {
			return m.act(&spin.Action{Name: name, Op: (*spin.Op)(unsafe.Pointer(&m.memory[op]))})
		})
	}
	for _, name := range []string{"dma_cas", "dma_cas_nb"} {
		export(name, func(space uint32, offset, compare, swap uint64, found uint32) int32 {
			return m.act(&spin.Action{Name: name, Space: spin.Space(space), Offset: offset, A: compare, B: swap, Word: m.word(found)})
		})
	}
	export("dma_wait", func(h int32) int32 { return m.act(&spin.Action{Name: "dma_wait", Handle: spin.Handle(h)}) })
	export("ct_inc", func(ct uint32, success, failure uint64) int32 {
		return m.act(&spin.Action{Name: "ct_inc", Counter: spin.Counter(ct), A: success, B: failure})
	})
	export("cas", func(at uint32, compare, swap uint64) int32 {
		return m.act(&spin.Action{Name: "cas", Word: m.word(at), A: compare, B: swap})
	})
	export("fadd", func(at uint32, inc uint64) int64 {
		return m.d.Act(&spin.Action{Name: "fadd", Word: m.word(at), A: inc})
	})
	export("yield", func() { m.act(&spin.Action{Name: "yield"}) })
	export("cycles", func() int64 { return m.d.Act(&spin.Action{Name: "cycles"}) })
	export("my_hpu", func() int32 { return m.act(&spin.Action{Name: "my_hpu"}) })
	_, err := host.Instantiate(ctx)
	require.NoError(m.t, err)
}
