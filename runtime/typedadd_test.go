package runtime_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// added is the sum of two numbers of a type, from and to their bits.
func added(t portals.Datatype, a, b uint64) uint64 {
	switch t {
	case portals.Float:
		return uint64(math.Float32bits(math.Float32frombits(uint32(a)) + math.Float32frombits(uint32(b))))
	case portals.Double:
		return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
	}
	return (a + b) << (64 - 8*t.Size()) >> (64 - 8*t.Size())
}

// TestTypedFetchAdds adds to a number of each type in host memory, which its
// neighbours do not notice, nor those of the number found (sPIN'17 B.6:
// "increments the value of type t").
func TestTypedFetchAdds(t *testing.T) {
	const found = 32768
	increments := map[portals.Datatype]int64{portals.Float: int64(math.Float32bits(2.5)), portals.Double: int64(math.Float64bits(-1e10))}
	var calls, after []asked
	at := func(typ portals.Datatype, k int) int64 { return 64*int64(typ) + 32*int64(k) + 8 }
	inc := func(typ portals.Datatype) int64 {
		if v, is := increments[typ]; is {
			return v
		}
		return 0x7fff_ffff_ffff_fff3
	}
	for typ := portals.Int8; typ <= portals.Double; typ++ {
		calls = append(calls, asked{hpu.OpDMAFAddTyped, []int64{0, at(typ, 0), int64(typ), inc(typ), found + at(typ, 0)}},
			asked{hpu.OpDMAFAddTypedNB, []int64{0, at(typ, 1), int64(typ), inc(typ), found + at(typ, 1)}}, asked{hpu.OpDMAWait, []int64{0}})
	}
	wrong := [][]int64{
		{0, 2, int64(portals.Uint32), 1, found},
		{0, 1, int64(portals.Int16), 1, found},
		{0, 8, int64(portals.FloatComplex), 1, found},
		{0, 16, int64(portals.LongDouble), 1, found},
		{0, 16, -1, 1, found},
		{0, 1 << 16, int64(portals.Uint8), 1, found},
	}
	for _, args := range wrong {
		after = append(after, asked{hpu.OpDMAFAddTyped, args})
	}
	r := &straightRun{T: t, bytes: 8, handlers: map[string][]asked{"payload": append(calls, after...)}}
	var before []byte
	r.target = func(*runtime.Proc, *nic.Memory) error {
		host := r.host.Raw()
		copy(host, solid(len(host)))
		for typ := portals.Int8; typ <= portals.Double; typ++ {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], first(typ))
			for k := range 2 {
				copy(host[at(typ, k):], b[:typ.Size()])
			}
		}
		before = append([]byte(nil), host...)
		return nil
	}
	r.run()
	require.NoError(t, r.err)
	memory, want := r.memory.Program().Memory(), append([]byte(nil), before...)
	for typ := portals.Int8; typ <= portals.Double; typ++ {
		for k := range 2 {
			var old, sum [8]byte
			copy(old[:], before[at(typ, k):][:typ.Size()])
			binary.LittleEndian.PutUint64(sum[:], added(typ, binary.LittleEndian.Uint64(old[:]), uint64(inc(typ))<<(64-8*typ.Size())>>(64-8*typ.Size())))
			copy(want[at(typ, k):], sum[:typ.Size()])
			require.Equal(t, old[:], memory[found+at(typ, k):][:8], "%v: what was found, and nothing behind it", typ)
		}
	}
	require.Equal(t, want, r.host.Snapshot())
	results := []int64(nil)
	for _, s := range r.of(nic.StepAnswered, hpu.OpDMAFAddTyped, "") {
		results = append(results, s.Result)
	}
	require.Equal(t, append(make([]int64, portals.Double+1), hpu.Invalid, hpu.Invalid, hpu.Invalid, hpu.Invalid, hpu.Invalid, hpu.Denied), results)
}

// first is a number of a type, its bits.
func first(t portals.Datatype) uint64 {
	switch t {
	case portals.Float:
		return uint64(math.Float32bits(0.25))
	case portals.Double:
		return math.Float64bits(math.Pi)
	}
	return 0xfff0_f1f2_c1f3_f4ff
}
