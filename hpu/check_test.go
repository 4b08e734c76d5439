package hpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// troubled is a module with three bad imports, a memory that is not exported,
// and two of three functions invalid.
func troubled() []byte {
	types := wasm.AppendU32(nil, 2)
	types = wasm.AppendTypes(wasm.AppendTypes(append(types, 0x60), handlerType.Params), handlerType.Results)
	types = wasm.AppendTypes(wasm.AppendTypes(append(types, 0x60), nil), nil)
	imports := wasm.AppendU32(nil, 3)
	for _, name := range [][2]string{{"env", "puts"}, {"spin", "teleport"}, {"spin", "yield"}} {
		// a function of type 0
		imports = append(wasm.AppendName(wasm.AppendName(imports, name[0]), name[1]), 0, 0)
	}
	bodies := [][]byte{
		{0, byte(wasm.OpI64Const), 0, byte(wasm.OpEnd)}, // i64 for i32
		{0, byte(wasm.OpI32Const), 0, byte(wasm.OpEnd)},
		{0, byte(wasm.OpEnd)}, // nothing for i32
	}
	code := wasm.AppendU32(nil, uint32(len(bodies)))
	for _, body := range bodies {
		code = append(wasm.AppendU32(code, uint32(len(body))), body...)
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = wasm.AppendSection(b, 1, types)
	b = wasm.AppendSection(b, 2, imports)
	b = wasm.AppendSection(b, 3, []byte{3, 0, 0, 0})
	b = wasm.AppendSection(b, 5, []byte{1, 0, 3})
	b = wasm.AppendSection(b, 7, append(wasm.AppendName([]byte{1}, "payload"), wasm.ExportFunc, 3))
	return wasm.AppendSection(b, 10, code)
}

// A user who mends one reason after the other would load the module as often as there are.
func TestCheckFindsAllReasons(t *testing.T) {
	spec := testSpec()
	spec.MaxFunctions, spec.MaxMemoryBytes, spec.MaxCodeBytes = 2, 100_000, 10
	m, reasons := Check("bad", troubled(), spec)
	require.Nil(t, m)
	var causes []string
	for _, r := range reasons {
		causes = append(causes, r.Func+": "+r.Cause)
	}
	require.Equal(t, []string{
		": 3 functions, at most 2 on this device (hpu.max_functions)",
		": memory of 196608 bytes, at most 100000 on this device (hpu.max_memory_bytes)",
		": 14 bytes of code, at most 10 on this device (hpu.max_code_bytes)",
		": import env.puts: expected imports of module spin only",
		": import spin.teleport: there is no such import in ABI version 1",
		": import spin.yield has signature (i32, i32) -> i32, expected () -> ()",
		": the memory is not exported as memory",
		"payload: end: value of type i64, expected i32",
		"#5: end: a value of type i32 is missing",
	}, causes)
	_, err := Load("bad", troubled(), spec)
	require.Equal(t, reasons[0], err)
}

func TestCheckDescribesWhatIsTooLarge(t *testing.T) {
	m, reasons := Check("good", handlersWasm, testSpec())
	require.Empty(t, reasons)
	sizes := m.Sizes()

	small := testSpec()
	small.MaxCodeBytes, small.MaxFunctions = sizes.CodeBytes, sizes.Functions
	_, reasons = Check("fits exactly", handlersWasm, small)
	require.Empty(t, reasons)
	small.MaxCodeBytes--
	small.MaxFunctions--
	m, reasons = Check("too large", handlersWasm, small)
	require.Len(t, reasons, 2)
	require.NotEmpty(t, m.Functions())

	_, reasons = Check("cut off", handlersWasm[:100], testSpec())
	require.Len(t, reasons, 1)
}

// withManifest is a module whose manifest is the text.
func withManifest(module []byte, text string) []byte {
	return wasm.AppendSection(append([]byte(nil), module...), 0, append(wasm.AppendName(nil, "spinsim.manifest"), text...))
}

func TestManifest(t *testing.T) {
	m, err := Load("file.wasm", handlersWasm, testSpec())
	require.NoError(t, err)
	require.Nil(t, m.Manifest())
	require.Equal(t, "file.wasm", m.Library())

	said := withManifest(handlersWasm, `{"manifest":1,"name":"kernels","handlers":[{"export":"sum","kind":"payload"}]}`)
	m, err = Load("file.wasm", said, testSpec())
	require.NoError(t, err)
	require.Equal(t, "file.wasm", m.Name())
	require.Equal(t, "kernels", m.Library())
	require.Equal(t, []string{"sum"}, m.Manifest().OfKind("payload"))
	plain, err := Load("file.wasm", handlersWasm, testSpec())
	require.NoError(t, err)
	require.Equal(t, plain.Rewritten(), m.Rewritten(), "what runs does not depend on it")

	nameless, err := Load("file.wasm", withManifest(handlersWasm, `{"manifest":1}`), testSpec())
	require.NoError(t, err)
	require.Equal(t, "file.wasm", nameless.Library())
}

// What a module says of itself must be readable and true.
func TestManifestRefused(t *testing.T) {
	text := len(handlersWasm) + len("\x00\xff\x10spinsim.manifest")
	for _, x := range []struct {
		module []byte
		offset int
		cause  string
	}{
		{withManifest(handlersWasm, `{"manifest":3}`), text + 12, "manifest: manifest: version 3 of the manifest's form, this spinsim reads version 1"},
		{withManifest(handlersWasm, `{"manifest":1,"states":[{"name":"S","size":"8"}]}`), text + 43, "manifest: states[0].size: a string, expected a whole number"},
		{
			withManifest(handlersWasm, `{"manifest":1,"handlers":[{"export":"nix"}]}`), text,
			"manifest: handlers[0].export: the module exports no handler nix; it exports sum, xor, wait2,",
		},
		{withManifest(withManifest(handlersWasm, `{"manifest":1}`), `{"manifest":1}`), text + 14, "a second custom section spinsim.manifest"},
	} {
		_, err := Load("m", x.module, testSpec())
		var e *LoadError
		require.ErrorAs(t, err, &e)
		require.Contains(t, e.Cause, x.cause)
		require.Equal(t, x.offset, e.Offset, x.cause)
		m, reasons := Check("m", x.module, testSpec())
		require.Nil(t, m)
		require.Equal(t, []*LoadError{e}, reasons)
	}
}
