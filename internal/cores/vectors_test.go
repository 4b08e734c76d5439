package cores

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
)

// withVectors is cost table a15 with SIMD, and a port to memory of so many bytes.
func withVectors(t *testing.T, port int64) *hpu.CostTable {
	table, err := profile.Costs("a15")
	require.NoError(t, err)
	table.SIMD = hpu.SIMD{AccessBytes: port, Float: 1, Load: 1, Store: 1, Latency: hpu.SIMDLatency{Float: 5, Load: 3}}
	return table
}

// One by one, four floats take eight loads, at one a cycle. In lanes they take
// two, of two accesses each; or, if a vector is one access, eight instructions
// are fetched three at a time: 2 loads, addition, store, 3 additions, branch.
func TestVectorsByHand(t *testing.T) {
	for port, want := range map[int64][]float64{8: {8, 4}, 16: {8, 8. / 3}} {
		cycles, err := MeasureLoops(withVectors(t, port), Vectors(), Near)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, cycles, 1e-9)
	}
	table, err := profile.Costs("a15")
	require.NoError(t, err)
	_, err = MeasureLoops(table, Vectors(), Near)
	require.ErrorContains(t, err, "module vectors, function add_lanes, offset 0x")
	require.ErrorContains(t, err, ": SIMD: this device has none (hpu.costs.simd.access_bytes)")
}

// An element of a reduction is added by itself in either loop, so the bits are
// the same: of every kind of float, and of the machine's own additions, but that
// each NaN is the canonical one.
func TestLanesAddLikeFloats(t *testing.T) {
	const n = 4 * 2 * rounds
	edges := []uint32{0, 1 << 31, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x3F800000, 0xBF800000, 0x33800000}
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func() []byte {
		b := make([]byte, 0, 4*n)
		for range n {
			v := rng.Uint32()
			if rng.IntN(2) == 0 {
				v = edges[rng.IntN(len(edges))]
			}
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	into, from := draw(), draw()
	var want []byte
	for i := 0; i < len(into); i += 4 {
		at := func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[i:])) }
		sum := math.Float32bits(at(into) + at(from))
		if sum&0x7FFFFFFF > 0x7F800000 {
			sum = 0x7FC00000
		}
		want = binary.LittleEndian.AppendUint32(want, sum)
	}
	engine, err := hpu.NewEngine("wazero")
	require.NoError(t, err)
	image, err := compile(engine, true, specOf(withVectors(t, 16)))
	require.NoError(t, err)
	for _, loop := range Vectors() {
		program, err := image.Instantiate(loop.Name, silent{})
		require.NoError(t, err)
		c := program.Context(0)
		f, err := image.Module().Export(loop.Name)
		require.NoError(t, err)
		at, _ := program.HPUMemory()
		memory, packet := program.Memory(), c.PacketAddr(len(from))
		copy(memory[at:], into)
		copy(memory[packet:], from)
		binary.LittleEndian.PutUint32(memory[c.ArgsAddr():], packet)
		binary.LittleEndian.PutUint32(memory[c.ArgsAddr()+4:], n/4)
		c.Start(f, c.ArgsAddr(), at, 1<<40)
		require.Nil(t, c.Outcome().Err)
		require.Equal(t, want, program.Memory()[at:at+4*n], loop.Name)
	}
	require.NoError(t, engine.Close())
}
