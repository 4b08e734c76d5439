package hpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// vectorSpec is a device with SIMD and a port to memory of 64 bits. Its costs
// differ from each other and from those of testSpec.
func vectorSpec() *Spec {
	spec := testSpec()
	spec.Costs.SIMD = SIMD{
		AccessBytes: 8, Int: 101, IntMul: 103, Float: 107, FloatMul: 109, FloatDiv: 113, FloatSqrt: 127, Convert: 131, Shuffle: 137, Load: 139, Store: 149,
	}
	return spec
}

// vectorCase is an instruction of SIMD with its immediate operands.
type vectorCase struct {
	op  wasm.Opcode
	imm []byte
}

func (x *vectorCase) String() string { return fmt.Sprintf("%s %v", x.op.Info().Name, x.imm) }

// vectorCases are all instructions of SIMD, each with every lane, with some
// offsets, and with random shuffles and constants.
var vectorCases = func() (all []vectorCase) {
	rng := rand.New(rand.NewPCG(1, 1))
	random := func(below int) []byte {
		b := make([]byte, 16)
		for i := range b {
			b[i] = byte(rng.IntN(below))
		}
		return b
	}
	for op := range wasm.Opcodes {
		info := op.Info()
		if !info.Vector() {
			continue
		}
		for lane := range max(info.Lanes, 1) {
			switch info.Imm {
			case wasm.ImmLane:
				all = append(all, vectorCase{op, []byte{lane}})
			case wasm.ImmMemLane:
				all = append(all, vectorCase{op, []byte{0, 3 * lane, lane}})
			case wasm.ImmMem:
				all = append(all, vectorCase{op, []byte{0, 0}}, vectorCase{op, []byte{info.Align, 7}})
			case wasm.ImmLanes:
				for range 10 {
					all = append(all, vectorCase{op, random(32)})
				}
			case wasm.ImmV128:
				all = append(all, vectorCase{op, random(256)})
			default:
				all = append(all, vectorCase{op, nil})
			}
		}
	}
	return all
}()

// The opcodes that load and store operands and results, by letter.
var (
	vectorLoads  = map[byte]wasm.Opcode{'i': 0x28, 'I': 0x29, 'f': 0x2A, 'F': 0x2B, 'v': 0xFD00}
	vectorStores = map[byte]wasm.Opcode{'i': 0x36, 'I': 0x37, 'f': 0x38, 'F': 0x39, 'v': 0xFD0B}
)

// Where operands, a result, and the memory that is loaded and stored are.
const (
	operandsAt = 1024
	resultAt   = 48 // behind the operands
	loadedAt   = 2048
)

// body has operands loaded from the first parameter on, but for addresses,
// which are the second parameter, and stores the result behind them.
func (x *vectorCase) body() []byte {
	info := x.op.Info()
	params, result, _ := strings.Cut(info.Sig, ":")
	b := []byte{}
	if result != "" {
		b = wasm.AppendIndexed(b, wasm.OpLocalGet, 0)
	}
	for i := range len(params) {
		if i == 0 && info.Accesses() {
			b = wasm.AppendIndexed(b, wasm.OpLocalGet, 1)
			continue
		}
		b = appendOp(wasm.AppendIndexed(b, wasm.OpLocalGet, 0), vectorLoads[params[i]])
		b = append(b, 0, byte(16*i))
	}
	b = append(appendOp(b, x.op), x.imm...)
	if result != "" {
		b = append(appendOp(b, vectorStores[result[0]]), 0, resultAt)
	}
	return append(b, byte(wasm.OpI32Const), 0)
}

// vectorModule has a handler f0, f1, ... for each body, and h, which is f0.
func vectorModule(bodies ...[]byte) []byte {
	m := handlerModule(bodies[0]...)
	for i, body := range bodies {
		if i > 0 {
			m.funcs, m.bodies = append(m.funcs, 0), append(m.bodies, append([]byte{0}, body...))
		}
		m.exports = append(wasm.AppendName(m.exports, fmt.Sprint("f", i)), wasm.ExportFunc)
		m.exports = wasm.AppendU32(m.exports, uint32(i))
		m.nexports++
	}
	return m.bytes()
}

// plain is a module on wazero's interpreter, without our rewriter.
type plain struct {
	t   testing.TB
	mod api.Module
	mem []byte
}

func newPlain(t testing.TB, binary []byte) *plain {
	ctx := context.Background()
	// with wazero's own choice of features
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { require.NoError(t, rt.Close(ctx)) })
	mod, err := rt.Instantiate(ctx, binary)
	require.NoError(t, err)
	mem, ok := mod.Memory().Read(0, wasm.PageSize)
	require.True(t, ok)
	return &plain{t, mod, mem}
}

func (p *plain) run(name string) {
	_, err := p.mod.ExportedFunction(name).Call(context.Background(), operandsAt, loadedAt)
	require.NoError(p.t, err)
}

// canonicalLanes makes NaNs canonical in what an instruction has made.
func canonicalLanes(kind byte, b []byte) {
	for i := 0; i < 16; i += 4 {
		if v := le.Uint32(b[i:]); kind == 'x' && v&0x7FFFFFFF > 0x7F800000 {
			le.PutUint32(b[i:], canonicalNaN32)
		}
	}
	for i := 0; i < 16; i += 8 {
		if v := le.Uint64(b[i:]); kind == 'X' && v&(1<<63-1) > 0x7FF0<<48 {
			le.PutUint64(b[i:], canonicalNaN64)
		}
	}
}

// drawVector fills b with random bits or with edges of a random lane.
func drawVector(rng *rand.Rand, b []byte) {
	for i := 0; i < len(b); i += 8 {
		v := rng.Uint64()
		switch edge := interesting[rng.IntN(len(interesting))]; rng.IntN(6) {
		case 0:
			v = edge
		case 1: // floats of 32 bits, in the upper halves of the edges
			v = edge&^(1<<32-1) | interesting[rng.IntN(len(interesting))]>>32
		case 2: // small numbers in lanes of each width
			v = uint64(rng.IntN(4)) * []uint64{0x0101010101010101, 0x0001000100010001, 1<<32 | 1, 1}[rng.IntN(4)]
		case 3: // the largest and smallest, likewise
			v = []uint64{0x7F80FF017F80FF01, 0x7FFF8000FFFF0001, 0x7FFFFFFF80000000, 0x8000000000000000}[rng.IntN(4)]
		}
		le.PutUint64(b[i:], v)
	}
}

// TestVectors runs every instruction of SIMD on random and edge values, through
// the rewriter on each engine, and as it is on wazero's interpreter.
func TestVectors(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		names := map[string]bool{}
		for chunk := range slices.Chunk(vectorCases, 100) {
			bodies := make([][]byte, len(chunk))
			for i := range chunk {
				bodies[i] = chunk[i].body()
			}
			binary := vectorModule(bodies...)
			p, want := programOn(t, e, binary, vectorSpec(), answering), newPlain(t, binary)
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range chunk {
				info := chunk[i].op.Info()
				names[info.Name] = true
				for range 60 {
					drawVector(rng, want.mem[operandsAt:operandsAt+64])
					drawVector(rng, want.mem[loadedAt:loadedAt+128])
					got := p.Present()
					copy(got, want.mem)
					want.run(fmt.Sprint("f", i))
					canonicalLanes(info.NaN, want.mem[operandsAt+resultAt:])
					out := end(t, p.Context(0), fmt.Sprint("f", i), operandsAt, loadedAt, 1e6)
					require.Nil(t, out.Err, "%v", &chunk[i])
					require.Equal(t, want.mem[operandsAt:loadedAt+128], p.Present()[operandsAt:loadedAt+128], "%v", &chunk[i])
				}
			}
			require.NoError(t, p.Close())
		}
		require.Len(t, names, 236, "WebAssembly 2.0 has as many")
	})
}

// vectorTree is an expression of instructions on vectors. The first three values
// are operands, and each further one is made of values before it.
type vectorTree []struct {
	x    *vectorCase // nil: an operand
	from [3]int
}

// drawTree makes expressions in which every second instruction, about, cares for
// NaNs.
func drawTree(rng *rand.Rand, all, floats []*vectorCase) vectorTree {
	t := make(vectorTree, 3, 8)
	for range 1 + rng.IntN(5) {
		n, x := len(t), all[rng.IntN(len(all))]
		if rng.IntN(2) == 0 {
			x = floats[rng.IntN(len(floats))]
		}
		t = append(t, t[0])
		t[n].x, t[n].from = x, [3]int{n - 1 - rng.IntN(2), rng.IntN(n), rng.IntN(n)}
	}
	return t
}

// write appends the instructions for value i, and detours that leave it as it is.
func (t vectorTree) write(rng *rand.Rand, b []byte, i int) []byte {
	if t[i].x == nil {
		return append(appendOp(wasm.AppendIndexed(b, wasm.OpLocalGet, 0), 0xFD00), 0, byte(16*i))
	}
	plain := func() {
		for k := range t[i].x.operands() {
			b = t.write(rng, b, t[i].from[k])
		}
		b = append(appendOp(b, t[i].x.op), t[i].x.imm...)
	}
	vector, yes := byte(wasm.V128), byte(rng.IntN(2))
	switch rng.IntN(16) {
	case 0:
		b = append(b, byte(wasm.OpBlock), vector)
		plain()
		b = append(b, byte(wasm.OpI32Const), yes, byte(wasm.OpBrIf), 0, byte(wasm.OpEnd))
	case 1:
		b = append(b, byte(wasm.OpI32Const), yes, byte(wasm.OpIf), vector)
		plain()
		b = append(b, byte(wasm.OpElse))
		plain()
		b = append(b, byte(wasm.OpEnd))
	case 2:
		b = append(b, byte(wasm.OpLoop), vector)
		plain()
		b = append(b, byte(wasm.OpEnd))
	case 3:
		b = wasm.AppendV128(b, 1, 2)
		plain()
		b = append(b, byte(wasm.OpI32Const), 0, byte(wasm.OpSelect))
	case 4:
		plain()
		b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalSet, 2), wasm.OpLocalGet, 2)
	case 5:
		plain()
		b = append(b, byte(wasm.OpCall), 1)
	case 6:
		plain()
		b = append(b, byte(wasm.OpI32Const), 0, byte(wasm.OpCallIndirect), 1, 0)
	default:
		plain()
	}
	return b
}

// module has a handler that stores the last value.
func (t vectorTree) module(rng *rand.Rand) []byte {
	b := t.write(rng, wasm.AppendIndexed([]byte{1, 1, byte(wasm.V128)}, wasm.OpLocalGet, 0), len(t)-1)
	m := handlerModule()
	m.bodies[0] = append(b, 0xFD, 0x0B, 0, resultAt, byte(wasm.OpI32Const), 0)
	v := []wasm.ValueType{wasm.V128}
	m.types = append(m.types, wasm.FuncType{Params: v, Results: v})
	m.funcs, m.bodies = append(m.funcs, 1), append(m.bodies, []byte{0, byte(wasm.OpLocalGet), 0})
	m.table, m.elements = []byte{1, 0x70, 0, 1}, []byte{1, 0, byte(wasm.OpI32Const), 0, byte(wasm.OpEnd), 1, 1}
	return m.bytes()
}

// operands is how many vectors an instruction takes that takes nothing else.
func (x *vectorCase) operands() int { return len(x.op.Info().Sig) - len(":v") }

// on computes all values, one instruction after the other on the interpreter,
// whose handlers have the names of the instructions.
func (t vectorTree) on(one *plain, name map[*vectorCase]string, operands []byte) (result []byte) {
	values := make([][]byte, len(t))
	for i, v := range t {
		if v.x == nil {
			values[i] = operands[16*i : 16*i+16]
			continue
		}
		for k, from := range v.from {
			copy(one.mem[operandsAt+16*k:], values[from])
		}
		one.run(name[v.x])
		values[i] = slices.Clone(one.mem[operandsAt+resultAt : operandsAt+resultAt+16])
		canonicalLanes(v.x.op.Info().NaN, values[i])
	}
	return values[len(t)-1]
}

// TestVectorsTogether compares expressions of several instructions with their
// instructions one by one on the interpreter, each NaN made canonical at once. It
// finds a NaN whose bits an engine chose and a later instruction showed.
func TestVectorsTogether(t *testing.T) {
	var all, floats []*vectorCase
	var bodies [][]byte
	name := map[*vectorCase]string{}
	for i := range vectorCases {
		x := &vectorCases[i]
		params, result, _ := strings.Cut(x.op.Info().Sig, ":")
		if result != "v" || params == "" || strings.Trim(params, "v") != "" {
			continue
		}
		if x.op.Info().AlikeNaN != 0 {
			floats = append(floats, x)
		}
		name[x] = fmt.Sprint("f", len(all))
		all, bodies = append(all, x), append(bodies, x.body())
	}
	one := newPlain(t, vectorModule(bodies...))
	onEngines(t, func(t *testing.T, e Engine) {
		rng := rand.New(rand.NewPCG(1, 3))
		for range 300 {
			tree := drawTree(rng, all, floats)
			p := programOn(t, e, tree.module(rng), vectorSpec(), answering)
			for range 20 {
				operands := p.Present()[operandsAt : operandsAt+resultAt]
				drawVector(rng, operands)
				require.Nil(t, end(t, p.Context(0), "h", operandsAt, 0, 1e6).Err)
				got := p.Present()[operandsAt+resultAt : operandsAt+resultAt+16]
				require.Equal(t, tree.on(one, name, operands), got, "%v", tree)
			}
			require.NoError(t, p.Close())
		}
	})
}

// TestNaNsBetweenNumbersAndLanes makes NaNs that are canonical where they go from
// a number to a lane and back: of infinity less infinity, which gives another
// NaN on most machines.
func TestNaNsBetweenNumbersAndLanes(t *testing.T) {
	infinity := func(b []byte, double bool) []byte { // less itself
		for range 2 {
			if double {
				b = le.AppendUint64(append(b, byte(wasm.OpF64Const)), 0x7FF<<52)
			} else {
				b = le.AppendUint32(append(b, byte(wasm.OpF32Const)), 0xFF<<23)
			}
		}
		return append(b, byte(map[bool]wasm.Opcode{false: wasm.OpF32Sub, true: wasm.OpF64Sub}[double]))
	}
	lanes := func(op wasm.Opcode) []byte { // vectors of infinities, less each other
		b := wasm.AppendV128(wasm.AppendV128(nil, 0x7F8000007F800000, 0x7FF<<52), 0x7F8000007F800000, 0x7FF<<52)
		return wasm.AppendVector(b, op)
	}
	for name, x := range map[string]struct {
		code []byte
		want int32
	}{
		"f32 in all lanes": {append(wasm.AppendVector(wasm.AppendVector(infinity(nil, false), 0xFD13), 0xFD1B), 3), canonicalNaN32},
		"f64 in all lanes": {append(wasm.AppendVector(wasm.AppendVector(infinity(nil, true), 0xFD14), 0xFD1B), 1), canonicalNaN64 >> 32},
		"f32 in a lane":    {append(append(wasm.AppendVector(infinity(wasm.AppendV128(nil, 0, 0), false), 0xFD20), 2, 0xFD, 0x1B), 2), canonicalNaN32},
		// with i32.reinterpret_f32
		"a lane of f32":      {append(append(lanes(0xFDE5), 0xFD, 0x1F, 1), 0xBC), canonicalNaN32},
		"half a lane of f64": {append(lanes(0xFDF1), 0xFD, 0x1B, 3), canonicalNaN64 >> 32},
	} {
		onEngines(t, func(t *testing.T, e Engine) {
			p := programOn(t, e, handlerModule(x.code...).bytes(), vectorSpec(), answering)
			require.Equal(t, Code(x.want), end(t, p.Context(0), "h", 0, 0, 1e6).Code, name)
		})
	}
}
