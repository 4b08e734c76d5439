package hpu

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// repeated writes body as often as fits n bytes.
func repeated(before, body, after string, n int) *moduleOf {
	return handlerModule([]byte(before + string(bytes.Repeat([]byte(body), n/len(body))) + after)...)
}

// with returns a module with a handler that returns 0, changed.
func with(change func(m *moduleOf)) []byte {
	m := handlerModule(0x41, 0)
	change(m)
	return m.bytes()
}

// rejected are modules that Load must not accept, and what it must say about them.
var rejected = []struct {
	name   string
	module func() []byte
	want   string
}{
	{"empty file", func() []byte { return nil }, "offset 0x0: not a WebAssembly module: it does not begin with \\0asm"},
	{"text format", func() []byte { return []byte("(module (func))") }, "offset 0x0: not a WebAssembly module: it does not begin with \\0asm"},
	{"component", func() []byte { return []byte("\x00asm\x0d\x00\x01\x00") }, "offset 0x4: version 65549 of the binary format, expected 1"},
	{"no memory", func() []byte { return []byte("\x00asm\x01\x00\x00\x00") }, "the module defines no memory, expected one, exported as memory"},
	{
		"no handler", func() []byte {
			return with(func(m *moduleOf) { m.types[0] = wasm.FuncType{}; m.bodies[0] = []byte{0} })
		},
		"no exported function has the signature of a handler, (i32, i32) -> i32",
	},
	{
		"memory of 4 GiB", func() []byte { return with(func(m *moduleOf) { m.memory = []byte{0, 0x80, 0x80, 4} }) },
		"offset 0x18: memory of 4294967296 bytes, at most 1048576 on this device",
	},
	{
		"memory without end", func() []byte { return with(func(m *moduleOf) { m.memory = []byte{0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F} }) },
		"offset 0x18: memory of 281474976645120 bytes, at most 1048576 on this device",
	},
	{"64-bit memory", func() []byte { return with(func(m *moduleOf) { m.memory = []byte{4, 1} }) }, "offset 0x18: 64-bit memory: not supported"},
	{
		"shared memory", func() []byte { return with(func(m *moduleOf) { m.memory = []byte{3, 1, 1} }) },
		"offset 0x18: threads: not supported (shared memory)",
	},
	{
		"memory grows", func() []byte { return handlerModule(0x41, 1, 0x40, 0).bytes() },
		"function h, offset 0x31: memory.grow: not supported (instruction 0x40)",
	},
	{"SIMD", func() []byte { return handlerModule(0xFD, 0).bytes() }, "function h, offset 0x2f: SIMD: this device has none (hpu.costs.simd.access_bytes)"},
	{
		"SIMD in a local variable", func() []byte {
			return with(func(m *moduleOf) { m.bodies[0] = append([]byte{1, 1, byte(wasm.V128)}, m.bodies[0][1:]...) })
		}, "function h, offset 0x30: SIMD: this device has none (hpu.costs.simd.access_bytes)",
	},
	{"threads", func() []byte { return handlerModule(0xFE, 0).bytes() }, "function h, offset 0x2f: threads: not supported (instruction 0xfe)"},
	{"exceptions", func() []byte { return handlerModule(0x06, 0x40).bytes() }, "function h, offset 0x2f: exceptions: not supported (instruction 0x06)"},
	{"tail calls", func() []byte { return handlerModule(0x12, 0).bytes() }, "function h, offset 0x2f: tail calls: not supported (instruction 0x12)"},
	{
		"reference types", func() []byte { return handlerModule(0xD0, 0x70).bytes() },
		"function h, offset 0x2f: reference types: not supported (instruction 0xd0)",
	},
	{
		"table operations", func() []byte { return handlerModule(0xFC, 0x10, 0).bytes() },
		"function h, offset 0x2f: bulk table operations: not supported (instruction 0xfc10)",
	},
	{
		"block of several values", func() []byte { return handlerModule(0x02, 0, 0x0B).bytes() },
		"function h, offset 0x30: multiple values: not supported (block of type 0)",
	},
	{"several results", func() []byte {
		return with(func(m *moduleOf) {
			m.types = append(m.types, wasm.FuncType{Results: []wasm.ValueType{wasm.I32, wasm.I32}})
		})
	}, "offset 0x11: multiple values: not supported (2 results)"},
	{
		"two memories", func() []byte {
			return bytes.Replace(with(func(*moduleOf) {}), []byte{5, 3, 1, 0, 1}, []byte{5, 5, 2, 0, 1, 0, 1}, 1)
		},
		"offset 0x17: multiple memories: not supported",
	},
	{"unknown instruction", func() []byte { return handlerModule(0xEE).bytes() }, "function h, offset 0x2f: unknown instruction 0xee"},
	{
		"too large a table", func() []byte { return with(func(m *moduleOf) { m.table = []byte{1, 0x70, 0, 0xFF, 0xFF, 0xFF, 0x7F} }) },
		"offset 0x18: table of 268435455 elements, at most 65536",
	},
	{"element outside the table", func() []byte {
		return with(func(m *moduleOf) { m.table = []byte{1, 0x70, 0, 4}; m.elements = []byte{1, 0, 0x41, 3, 0x0B, 2, 0, 0} })
	}, "offset 0x33: element segment of 2 functions at 3 does not fit a table of 4"},
	{"element below the table", func() []byte {
		return with(func(m *moduleOf) { m.table = []byte{1, 0x70, 0, 4}; m.elements = []byte{1, 0, 0x41, 0x7F, 0x0B, 1, 0} })
	}, "offset 0x33: element segment of 1 functions at 4294967295 does not fit a table of 4"},
	{"element names no function", func() []byte {
		return with(func(m *moduleOf) { m.table = []byte{1, 0x70, 0, 4}; m.elements = []byte{1, 0, 0x41, 0, 0x0B, 1, 9} })
	}, "offset 0x38: element names function 9 of 1"},
	{
		"element without table", func() []byte { return with(func(m *moduleOf) { m.elements = []byte{1, 0, 0x41, 0, 0x0B, 1, 0} }) },
		"offset 0x2d: element segment without a table",
	},
	{"data outside the memory", func() []byte {
		return with(func(m *moduleOf) { m.data = []byte{1, 0, 0x41, 0xFF, 0xFF, 3, 0x0B, 2, 1, 1} })
	}, "data segment of 2 bytes at 65535 does not fit a memory of 65536 bytes"},
	{
		"data below the memory", func() []byte { return with(func(m *moduleOf) { m.data = []byte{1, 0, 0x41, 0x7F, 0x0B, 1, 1} }) },
		"data segment of 1 bytes at 4294967295 does not fit a memory of 65536 bytes",
	},
	{
		"data longer than the file", func() []byte {
			return with(func(m *moduleOf) { m.data = []byte{1, 0, 0x41, 0, 0x0B, 0xFF, 0xFF, 3, 1} })
		},
		"65535 bytes of data in 1 bytes",
	},
	{"more sections than bytes", func() []byte { return []byte("\x00asm\x01\x00\x00\x00\x01\x05\xff\xff\xff\xff\x0f") }, "offset 0xa: 4294967295 types in 0 bytes"},
	{"wrong type", func() []byte { return handlerModule(0x42, 0).bytes() }, "function h, offset 0x31: end: value of type i64, expected i32"},
	{"missing value", func() []byte { return handlerModule().bytes() }, "function h, offset 0x2f: end: a value of type i32 is missing"},
	{"value too many", func() []byte { return handlerModule(0x41, 0, 0x41, 0).bytes() }, "function h, offset 0x33: end: 1 values too many"},
	{"label", func() []byte { return handlerModule(0x41, 0, 0x0C, 1).bytes() }, "function h, offset 0x31: br: label 1 of 1"},
	{"local", func() []byte { return handlerModule(0x20, 2).bytes() }, "function h, offset 0x2f: local.get: local 2 of 2"},
	{"global", func() []byte { return handlerModule(0x23, 0).bytes() }, "function h, offset 0x2f: global.get: global 0 of 0"},
	{"callee", func() []byte { return handlerModule(0x10, 9).bytes() }, "function h, offset 0x2f: call of function 9 of 1"},
	{"alignment", func() []byte { return handlerModule(0x41, 0, 0x28, 3, 0).bytes() }, "function h, offset 0x32: i32.load with alignment 2^3, at most 2^2"},
	{
		"code behind the end", func() []byte { return handlerModule(0x41, 0, 0x0B, 0x01).bytes() },
		"function h, offset 0x31: instructions behind the end of the function",
	},
	{"4 billion locals", func() []byte {
		return with(func(m *moduleOf) { m.bodies[0] = []byte{1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0x7F, 0x41, 0} })
	}, "function h, offset 0x2f: 4294967295 locals in a body of 10 bytes, at most 74"},
	{"1 MB of code", func() []byte { return repeated("", "\x01", "\x41\x00", 1<<20).bytes() }, "offset 0x2e: 1048584 bytes of code, at most 262144 on this device"},
	{"100,000 functions", func() []byte {
		return with(func(m *moduleOf) {
			m.funcs, m.bodies = make([]uint32, 100_000), make([][]byte, 100_000)
			for i := range m.bodies {
				m.bodies[i] = []byte{0, 0x41, 0}
			}
		})
	}, "100000 functions, at most 1000 on this device"},
	{"deep nesting", func() []byte { return repeated("", "\x02\x40", "\x41\x00", 1<<16).bytes() }, "1024 control instructions within each other"},
	{"high stack", func() []byte { return repeated("", "\x41\x00", "", 1<<16).bytes() }, "4097 values on the operand stack, at most 4096"},
	{
		"thousands of loops", func() []byte { return repeated("", "\x03\x40\x20\x00\x0d\x00\x0b", "\x41\x00", 1<<17).bytes() },
		"function h: too much to compile: the module has ",
	},
	{
		"thousands of labels", func() []byte {
			return repeated("\x41\x00\x02\x40\x41\x00\x0e\x80\x80\x04", "\x00", "\x00\x0b", 1<<16).bytes()
		},
		"function h: too much to compile: the module has ",
	},
	{
		"values that wait across thousands of blocks", func() []byte {
			return repeated(strings.Repeat("\x20\x00", 4000), "\x02\x40\x0b", strings.Repeat("\x1a", 3999), 1<<13).bytes()
		},
		"variables, in each block of their function",
	},
	{
		"two start functions", func() []byte { return with(func(m *moduleOf) { m.start = []byte{0} }) },
		"start function 0 has signature (i32, i32) -> i32, expected () -> ()",
	},
	{"wrong _initialize", func() []byte {
		return with(func(m *moduleOf) {
			m.exports, m.nexports = append(wasm.AppendName(nil, "_initialize"), wasm.ExportFunc, 0), 1
		})
	}, "_initialize has signature (i32, i32) -> i32, expected () -> ()"},
	{"import from elsewhere", func() []byte {
		return bytes.Replace(with(func(m *moduleOf) { m.imports = []Op{OpYield} }), []byte("\x04spin"), []byte("\x04wasi"), 1)
	}, "import wasi.yield: expected imports of module spin only"},
	{"unknown import", func() []byte {
		return bytes.Replace(with(func(m *moduleOf) { m.imports = []Op{OpYield} }), []byte("yield"), []byte("steal"), 1)
	}, "import spin.steal: there is no such import in ABI version 1"},
	{"import of another type", func() []byte {
		return bytes.Replace(with(func(m *moduleOf) { m.imports = []Op{OpYield} }), []byte("yield\x00\x01"), []byte("yield\x00\x00"), 1)
	}, "import spin.yield has signature (i32, i32) -> i32, expected () -> ()"},
	{
		"imported memory", func() []byte { return []byte("\x00asm\x01\x00\x00\x00\x02\x0b\x01\x04spin\x01m\x02\x00\x01") },
		"offset 0xb: import of a memory (spin.m): only functions can be imported",
	},
	{
		"name that is not UTF-8", func() []byte {
			return bytes.Replace(with(func(*moduleOf) {}), []byte("memory"), []byte("\xff\xfe\xfd\xfc\xfb\xfa"), 1)
		},
		"name is not UTF-8",
	},
	{"export twice", func() []byte { return with(func(m *moduleOf) { m.exports, m.nexports = []byte{1, 'h', 0, 0}, 1 }) }, `export "h" twice`},
}

// TestRejected has each hostile module give one clear error with its place.
func TestRejected(t *testing.T) {
	for _, x := range rejected {
		m, err := Load("evil", x.module(), testSpec())
		require.Error(t, err, x.name)
		require.Nil(t, m)
		var e *LoadError
		require.ErrorAs(t, err, &e)
		require.Contains(t, err.Error(), x.want, x.name)
		require.Contains(t, err.Error(), "module evil")
		_, reasons := Check("evil", x.module(), testSpec())
		require.NotEmpty(t, reasons, x.name)
	}
}

// TestTruncated cuts a good module off at every byte, and changes every byte, and looks for panics.
func TestTruncated(t *testing.T) {
	for i := range handlersWasm {
		// the data section may be missing
		if _, err := Load("cut", handlersWasm[:i], testSpec()); i < len(handlersWasm)-20 {
			require.Error(t, err, i)
		}
		for _, flip := range []byte{0x01, 0x80, 0xFF} {
			b := bytes.Clone(handlersWasm)
			b[i] ^= flip
			if _, err := Load("changed", b, testSpec()); err != nil {
				var e *LoadError
				require.ErrorAs(t, err, &e)
			}
		}
	}
}

// TestInitialisation runs start functions and _initialize that go wrong.
func TestInitialisation(t *testing.T) {
	module := func(ops []Op, export bool, code ...byte) []byte {
		m := handlerModule(0x41, 0)
		m.imports = ops
		m.types = append(m.types, wasm.FuncType{})
		m.funcs = append(m.funcs, 1)
		m.bodies = append(m.bodies, append([]byte{0}, code...))
		fn := byte(len(ops) + 1)
		if export {
			m.exports, m.nexports = append(wasm.AppendName(nil, "_initialize"), wasm.ExportFunc, fn), 1
		} else {
			m.start = []byte{fn}
		}
		return m.bytes()
	}
	for _, x := range []struct {
		name, want string
		ops        []Op
		code       []byte
	}{
		{"stops", "unreachable", nil, []byte{0x00}},
		{"loops", "killed: budget exceeded: 16777224 cycles charged, 16777216 allowed", nil, []byte{0x03, 0x40, 0x0C, 0, 0x0B}},
		{"acts", "yield: action not allowed at load", []Op{OpYield}, []byte{0x10, 0}},
		{"asks where it is", "my_hpu: action not allowed at load", []Op{OpMyHPU}, []byte{0x10, 0, 0x1A}},
		{"stores far away", "out of bounds memory access", nil, []byte{0x41, 0x7F, 0x41, 0, 0x36, 0, 0}},
		{"is good", "", []Op{OpNumHPUs}, []byte{0x41, 4, 0x10, 0, 0x36, 0, 0}},
	} {
		for _, export := range []bool{false, true} {
			onEngines(t, func(t *testing.T, e Engine) {
				m, err := Load("init", module(x.ops, export, x.code...), testSpec())
				require.NoError(t, err)
				img, err := e.Compile(m, 0)
				require.NoError(t, err)
				p, err := img.Instantiate("owner", answering)
				if x.want == "" {
					require.NoError(t, err)
					require.Equal(t, byte(4), p.Memory()[4])
					return
				}
				var trap *Trap
				require.ErrorAs(t, err, &trap, x.name)
				require.Contains(t, err.Error(), x.want)
				require.Contains(t, err.Error(), "module init")
			})
		}
	}
}

// TestLayoutLimits asks for more HPU memory than the device, or the addresses, allow.
func TestLayoutLimits(t *testing.T) {
	spec := testSpec()
	m, err := Load("m", handlersWasm, spec)
	require.NoError(t, err)
	_, err = m.Layout(1<<20 + 1)
	require.EqualError(t, err, "module m: HPU memory of 1048577 bytes, at most 1048576 on this device (hpu.max_hpu_memory)")
	spec.Cores, spec.Contexts, spec.PacketBytes = 256, 256, 1<<17
	m, err = Load("m", handlersWasm, spec)
	require.NoError(t, err)
	_, err = m.Layout(0)
	require.ErrorContains(t, err, "65536 contexts of 131840 bytes each are 8640397312 bytes together, at most 4294901760")
	onEngines(t, func(t *testing.T, e Engine) {
		_, err := e.Compile(m, 0)
		require.ErrorContains(t, err, "module m: 65536 bytes of own memory")
	})
}

// TestLongChain calls 2,000 different functions within each other: no recursion, and still an end.
func TestLongChain(t *testing.T) {
	spec := testSpec()
	spec.MaxFunctions = 2000
	m := handlerModule(0x20, 0, 0x20, 1, 0x10, 1)
	for i := range 1999 {
		m.funcs = append(m.funcs, 0)
		m.bodies = append(m.bodies, append(append([]byte{0, 0x20, 0, 0x20, 1}, 0x10), wasm.AppendU32(nil, uint32(i+2))...))
	}
	m.bodies[1999] = []byte{0, 0x20, 0}
	onEngines(t, func(t *testing.T, e Engine) {
		c := programOn(t, e, m.bytes(), spec, answering).Context(0)
		require.Equal(t, TrapCallDepth, end(t, c, "h", 0, 0, 1e6).Err.Kind)
	})
}

// References to functions are for what the rewriter adds: engines have them
// switched on, and so Load has to refuse them wherever a module could have one.
func TestReferencesAreRefused(t *testing.T) {
	global := func(g ...byte) func(m *moduleOf) {
		return func(m *moduleOf) { m.globals = append([]byte{1}, g...) }
	}
	body := func(b ...byte) func(m *moduleOf) {
		return func(m *moduleOf) { m.table, m.bodies[0] = []byte{1, 0x70, 0, 4}, append(b, 0x41, 0) }
	}
	element := func(e ...byte) func(m *moduleOf) {
		return func(m *moduleOf) { m.table, m.elements = []byte{1, 0x70, 0, 4}, append([]byte{1}, e...) }
	}
	typ := func(ts wasm.FuncType) func(m *moduleOf) { return func(m *moduleOf) { m.types = append(m.types, ts) } }
	for name, change := range map[string]func(m *moduleOf){
		"global that is null":          global(0x70, 0, 0xD0, 0x70, 0x0B),
		"global that is a function":    global(0x70, 1, 0xD2, 0, 0x0B),
		"global of the host":           global(0x6F, 0, 0xD0, 0x6F, 0x0B),
		"number that is a reference":   global(0x7F, 0, 0xD2, 0, 0x0B),
		"parameter":                    typ(wasm.FuncType{Params: []wasm.ValueType{wasm.FuncRef}}),
		"result":                       typ(wasm.FuncType{Results: []wasm.ValueType{wasm.FuncRef}}),
		"local":                        body(1, 1, 0x70),
		"block":                        body(0, 0x02, 0x70, 0x00, 0x0B, 0x1A),
		"ref.func":                     body(0, 0xD2, 0, 0x1A),
		"ref.is_null":                  body(0, 0x41, 0, 0xD1, 0x1A),
		"table.get":                    body(0, 0x41, 0, 0x25, 0, 0x1A),
		"table.set":                    body(0, 0x41, 0, 0x41, 0, 0x26, 0),
		"table.size":                   body(0, 0xFC, 0x10, 0, 0x1A),
		"table.init":                   body(0, 0x41, 0, 0x41, 0, 0x41, 0, 0xFC, 0x0C, 0, 0),
		"table.copy":                   body(0, 0x41, 0, 0x41, 0, 0x41, 0, 0xFC, 0x0E, 0, 0),
		"select with a type":           body(0, 0x41, 0, 0x41, 0, 0x41, 0, 0x1C, 1, 0x7F, 0x1A),
		"call through another table":   body(0, 0x41, 0, 0x41, 0, 0x41, 0, 0x11, 0, 1, 0x1A),
		"two tables":                   func(m *moduleOf) { m.table = []byte{2, 0x70, 0, 1, 0x70, 0, 1} },
		"table of the host":            func(m *moduleOf) { m.table = []byte{1, 0x6F, 0, 1} },
		"table with a first value":     func(m *moduleOf) { m.table = []byte{1, 0x40, 0, 0x70, 0, 1, 0xD2, 0, 0x0B} },
		"elements that are passive":    element(1, 0, 1, 0),
		"elements that are declared":   element(3, 0, 1, 0),
		"elements of another table":    element(2, 1, 0x41, 0, 0x0B, 0, 1, 0),
		"elements that are of no kind": element(2, 0, 0x41, 0, 0x0B, 0x70, 1, 0),
		"elements by expressions":      element(4, 0x41, 0, 0x0B, 1, 0xD2, 0, 0x0B),
	} {
		_, err := Load("evil", with(change), testSpec())
		var e *LoadError
		require.ErrorAs(t, err, &e, name)
	}
}
