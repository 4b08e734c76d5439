package host

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// An address gives the bytes of its range, and no access crosses the end of a
// range.
func TestAddressesResolveWithinTheirRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := NewAddressSpace(nil)
		defer a.Release()
		type block struct {
			addr uint64
			data []byte
		}
		var blocks []block
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, 10_000), 1, 20).Draw(t, "sizes") {
			addr := a.Alloc(n)
			data, ok := a.Bytes(addr, uint64(n))
			require.True(t, ok)
			require.Len(t, data, n)
			for k := range data {
				data[k] = byte(i)
			}
			blocks = append(blocks, block{addr, data})
		}
		for range 50 {
			i := rapid.IntRange(0, len(blocks)-1).Draw(t, "block")
			b := blocks[i]
			off := rapid.Uint64Range(0, uint64(len(b.data))+2).Draw(t, "offset")
			n := rapid.Uint64Range(0, uint64(len(b.data))+2).Draw(t, "length")
			got, ok := a.Bytes(b.addr+off, n)
			require.Equal(t, off+n <= uint64(len(b.data)), ok)
			if ok {
				require.Len(t, got, int(n))
				require.Equal(t, int(n), cap(got), "no slice grows into its neighbour")
				for _, v := range got {
					require.Equal(t, byte(i), v)
				}
			}
		}
		_, ok := a.Bytes(0, 1)
		require.False(t, ok, "address 0 is nothing")
		_, ok = a.Bytes(blocks[0].addr, 1<<63)
		require.False(t, ok)
		_, ok = a.Bytes(1<<64-1, 2)
		require.False(t, ok)
	})
}

// A server serves one request at a time, in order, is never idle while a
// request waits, and counts its work.
func TestServerIsFirstComeFirstServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Server{Rate: sim.NewRate(20, 1)}
		now, free, busy, bytes := sim.Time(0), sim.Time(0), sim.Time(0), int64(0)
		for range rapid.IntRange(1, 50).Draw(t, "requests") {
			now += sim.Time(rapid.IntRange(0, 5000).Draw(t, "pause"))
			n := int64(rapid.IntRange(0, 300).Draw(t, "bytes"))
			start, end := s.Reserve(now, n)
			require.Equal(t, max(now, free), start)
			require.Equal(t, start+sim.Time(20*n), end)
			free, busy, bytes = end, busy+end-start, bytes+n
		}
		require.Equal(t, free, s.Free())
		require.Equal(t, busy, s.Busy())
		require.Equal(t, bytes, s.Bytes())
	})
}

// 22 GB/s: a line of 64 B takes 2,909.09 ps, 4 KiB 64 times that.
func TestStreamTakesWholeLines(t *testing.T) {
	s := Spec{
		Cores: 1, MemoryLatency: 51 * sim.Nanosecond, LineBytes: 64, CoreBandwidth: sim.NewRate(1000, 22), CopyChunk: 4096, Poll: 1, Match: 1,
	}
	require.NoError(t, s.Validate())
	require.Equal(t, sim.Time(186_182), s.StreamTime(4096))
	require.Equal(t, sim.Time(2909), s.StreamTime(1), "a part of a line is a line")
	require.Zero(t, s.StreamTime(0))
	s.Cores, s.CopyChunk = 0, 8
	err := s.Validate()
	require.ErrorContains(t, err, "cores: 0, expected 1 to 4096")
	require.ErrorContains(t, err, "copy_chunk: 8, expected 64 to 1048576")
}

// The fields of a bus in a profile have bounds. One error names all violations,
// by the names of the profile.
func TestBusSpec(t *testing.T) {
	s := BusSpec{Latency: sim.Second, Bandwidth: sim.NewRate(7, 3), EventBytes: 4096, Charge: ChargeLatency}
	require.NoError(t, s.Validate())
	s = BusSpec{Latency: -1, Bandwidth: sim.NewRate(2*sim.Millisecond, 1), EventBytes: 4097, Charge: "some"}
	require.EqualError(t, s.Validate(), "latency: -1 ps, expected 0 s to 1 s\n"+
		"bandwidth: "+s.Bandwidth.String()+" is slower than 1 ms for a byte\n"+
		"event_bytes: 4097, expected 0 to 4096\n"+
		`charge: "some", expected full or latency`)
}
