package datatype_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/internal/typetest"
)

// Sizes, bounds, packing, unpacking, any part of the stream, and overlap agree
// with MPI's definition, taken literally.
func TestAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := typetest.Draw(t, 3)
		m := mapOf(d)
		require.Equal(t, m.size(), d.Size())
		lb, ub := m.bounds()
		gotLB, gotExtent := d.Extent()
		require.Equal(t, [2]int64{lb, ub - lb}, [2]int64{gotLB, gotExtent}, "extent")
		from, to := m.data()
		gotLB, gotExtent = d.TrueExtent()
		require.Equal(t, [2]int64{from, to - from}, [2]int64{gotLB, gotExtent}, "true extent")

		count := rapid.IntRange(0, 3).Draw(t, "count")
		places := m.places(count)
		checkRuns(t, d, count, places)
		overlaps, err := d.Overlaps(count)
		require.NoError(t, err)
		sorted := slices.Clone(places)
		slices.Sort(sorted)
		require.Equal(t, len(slices.Compact(sorted)) < len(places), overlaps, "overlap")
		checkPacking(t, d, count, places)
	})
}

// checkRuns draws a part of the stream and compares the place of each byte.
func checkRuns(t *rapid.T, d *datatype.Type, count int, places []int64) {
	begin := rapid.IntRange(0, len(places)).Draw(t, "from")
	end := rapid.IntRange(begin, len(places)).Draw(t, "to")
	var got []int64
	require.NoError(t, d.Runs(count, int64(begin), int64(end), func(at, n int64) {
		require.Positive(t, n)
		for i := range n {
			got = append(got, at+i)
		}
	}))
	require.True(t, slices.Equal(places[begin:end], got), "bytes %d to %d: %v, expected %v", begin, end, got, places[begin:end])
}

func checkPacking(t *rapid.T, d *datatype.Type, count int, places []int64) {
	low, high := int64(0), int64(0)
	if len(places) > 0 {
		low, high = slices.Min(places), slices.Max(places)+1
	}
	at := max(0, -low)
	memory := make([]byte, at+max(high, 0))
	for i := range memory {
		memory[i] = byte(i*7 + i>>8 + 1)
	}
	stream := make([]byte, len(places))
	require.NoError(t, d.Pack(stream, memory, int(at), count))
	into, expected := make([]byte, len(memory)), make([]byte, len(memory))
	for i, p := range places {
		require.Equal(t, memory[at+p], stream[i], "byte %d", i)
		stream[i] = byte(i*13 + 5)
		expected[at+p] = stream[i]
	}
	require.NoError(t, d.Unpack(into, int(at), stream, count))
	require.True(t, slices.Equal(expected, into), "unpacked")
	if len(places) > 0 {
		require.Error(t, d.Pack(stream[1:], memory, int(at), count))
		require.Error(t, d.Unpack(memory[:at+high-1], int(at), stream, count))
		require.Error(t, d.Unpack(memory, int(-low)-1, stream, count))
	}
}

// Blocks and Lines agree with a count over the runs.
func TestBlocksAndLines(t *testing.T) {
	random := rapid.Custom(func(rt *rapid.T) bool {
		d := typetest.Draw(rt, 3)
		count, line := rapid.IntRange(0, 3).Draw(rt, "count"), rapid.SampledFrom([]int{1, 3, 64}).Draw(rt, "line")
		var blocks, lines int64
		last, begun := int64(0), false
		require.NoError(rt, d.Runs(count, 0, d.Size()*int64(count), func(at, n int64) {
			blocks++
			for b := at; b < at+n; b++ {
				if l := int64(math.Floor(float64(b) / float64(line))); !begun || l != last {
					lines++
					last, begun = l, true
				}
			}
		}))
		got, err := d.Blocks(count)
		require.NoError(rt, err)
		require.Equal(rt, blocks, got)
		got, err = d.Lines(count, line)
		require.NoError(rt, err)
		require.Equal(rt, lines, got)
		return true
	})
	for seed := range 500 {
		random.Example(seed)
	}
	_, err := datatype.Int8.Blocks(-1)
	require.EqualError(t, err, "datatype: -1 times int8, expected at least 0")
	_, err = datatype.Int8.Lines(-1, 64)
	require.ErrorContains(t, err, "-1 times int8")
}
