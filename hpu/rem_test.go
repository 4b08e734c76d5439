package hpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// remainderUnderPressure is a handler that loads two operands and n other values, takes the
// remainder, and stores all of them again at other places: the remainder behind the first after of
// the others. So n values wait in registers, as long as there are enough.
func remainderUnderPressure(op wasm.Opcode, n, after int) []byte {
	typ, load, store := wasm.I32, byte(0x28), byte(0x36)
	if op >= wasm.OpI64RemS {
		typ, load, store = wasm.I64, 0x29, 0x37
	}
	b := append(wasm.AppendU32([]byte{1}, uint32(n+3)), byte(typ)) // operands, others, remainder
	at := func(i int) uint32 { return uint32(8 * i) }
	for i := range n + 2 {
		b = wasm.AppendU32(append(b, byte(wasm.OpLocalGet), 0, load, 0), at(i))
		b = wasm.AppendIndexed(b, wasm.OpLocalSet, uint32(2+i))
	}
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalGet, 2), wasm.OpLocalGet, 3)
	b = wasm.AppendIndexed(append(b, byte(op)), wasm.OpLocalSet, uint32(n+4))
	put := func(from, to int) {
		b = wasm.AppendIndexed(append(b, byte(wasm.OpLocalGet), 0), wasm.OpLocalGet, uint32(2+from))
		b = wasm.AppendU32(append(b, store, 0), at(n+2+to))
	}
	for i := range n + 2 {
		if i == after {
			put(n+2, n+2)
		}
		put(i, i)
	}
	if after >= n+2 {
		put(n+2, n+2)
	}
	m := handlerModule()
	m.bodies[0] = append(b, byte(wasm.OpI32Const), 7)
	return m.bytes()
}

// remainderOf is what Go computes; ok is false where the divisor is zero.
func remainderOf(op wasm.Opcode, a, b uint64) (r uint64, ok bool) {
	switch {
	case op == wasm.OpI64RemS && b != 0:
		return uint64(int64(a) % int64(b)), true
	case op == wasm.OpI64RemU && b != 0:
		return a % b, true
	case op == wasm.OpI32RemS && int32(b) != 0:
		return uint64(uint32(int32(a) % int32(b))), true
	case op == wasm.OpI32RemU && uint32(b) != 0:
		return uint64(uint32(a) % uint32(b)), true
	}
	return 0, false
}

var remEdges = []uint64{0, 1, 2, 7, math.MaxInt32, 1 << 31, math.MaxUint32, 1 << 32, math.MaxInt64, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}

// TestRemainders compares remainders with those of Go, of values at the edges, with more and more
// values that are needed afterwards, up to twice as many as any processor has registers: as the
// loader writes them, and written as a division. Both cost the same, and leave everything else as
// it was. As an instruction the first to fail on arm64 would be i32.rem_s with 21 values.
func TestRemainders(t *testing.T) {
	onEngines(t, func(t *testing.T, e Engine) {
		for _, divide := range []bool{true, remByDivision} {
			wrong, costs := remaindersOf(t, e, divide)
			require.Empty(t, wrong)
			require.Equal(t, map[int64]bool{testSpec().Costs.IntDiv: true}, costs)
		}
	})
}

// remaindersOf runs handlers and returns what is wrong, and what the remainders have cost.
func remaindersOf(t *testing.T, e Engine, divide bool) (wrong []string, costs map[int64]bool) {
	rng := rand.New(rand.NewPCG(1, 2))
	costs = make(map[int64]bool)
	for _, op := range []wasm.Opcode{wasm.OpI32RemS, wasm.OpI32RemU, wasm.OpI64RemS, wasm.OpI64RemU} {
		for n := range 64 {
			module := remainderUnderPressure(op, n, []int{0, n / 2, n + 2}[rng.IntN(3)])
			m, err := load("m", module, testSpec(), MaxUnchecked, divide)
			require.NoError(t, err)
			img, err := e.Compile(m, 2048)
			require.NoError(t, err)
			p, err := img.Instantiate("p", answering)
			require.NoError(t, err)
			for range 40 {
				w, cycles := tryRemainder(t, p, op, n, rng)
				if w != "" {
					wrong = append(wrong, w)
				}
				c := testSpec().Costs
				costs[cycles-int64(n+2)*c.Load-int64(n+3)*c.Store-movesOf(n)*c.Spill] = true
			}
			require.NoError(t, img.Close())
		}
	}
	return wrong, costs
}

// movesOf is how many moves of remainderUnderPressure are charged: names of values beyond those
// that instructions take.
func movesOf(n int) int64 {
	names, others := int64(2*(n+2)+3+2*(n+3)+1), int64(n+2+1+n+3)
	c := testSpec().Costs
	return max(0, names-c.Registers-c.Operands*others)
}

// tryRemainder returns what is wrong, "" if all is as it should be.
func tryRemainder(t *testing.T, p *Program, op wasm.Opcode, n int, rng *rand.Rand) (wrong string, cycles int64) {
	state, _ := p.HPUMemory()
	values := make([]uint64, n+2)
	for i := range values {
		values[i] = remEdges[rng.IntN(len(remEdges))] + uint64(rng.IntN(3)) - 1
		if rng.IntN(3) == 0 {
			values[i] = rng.Uint64() >> rng.IntN(64)
		}
		le.PutUint64(p.Memory()[state+uint32(8*i):], values[i])
	}
	name := fmt.Sprintf("%s of %#x and %#x, %d values: ", op.Info().Name, values[0], values[1], n)
	out := end(t, p.Context(0), "h", state, 0, 1e6)
	want, ok := remainderOf(op, values[0], values[1])
	switch {
	case !ok && (out.Err == nil || out.Err.Kind != TrapDivideByZero), ok && out.Err != nil:
		return fmt.Sprint(name, out.Err), out.Cycles
	case !ok && p.Module().wasm.Bytes[out.Err.Offset] != byte(op):
		return fmt.Sprint(name, "place: ", out.Err), out.Cycles
	case !ok:
		return "", out.Cycles
	}
	mask := uint64(math.MaxUint64)
	if op < wasm.OpI64RemS {
		mask = math.MaxUint32
	}
	for i, v := range append(values, want) {
		if got := le.Uint64(p.Memory()[state+uint32(8*(n+2+i)):]); got&mask != v&mask {
			return fmt.Sprintf("%svalue %d is %#x, expected %#x", name, i, got&mask, v&mask), out.Cycles
		}
	}
	return "", out.Cycles
}
