package mpi_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

// A call with arguments that cannot be right returns an error that names what
// was expected, and sends nothing.
func TestTypedCollectiveArguments(t *testing.T) {
	twice, err := datatype.Vector(2, 2, 1, datatype.Int32)
	require.NoError(t, err)
	mixed, err := datatype.Struct([]int{1, 1}, []int64{0, 8}, []*datatype.Type{datatype.Int32, datatype.Float32})
	require.NoError(t, err)
	closely, err := datatype.Resized(column(t, 2), 0, 16) // the next begins in this one
	require.NoError(t, err)
	own := mpi.NewOp("mine", true, func(_, _, _ []byte) {})
	w := makeWorld(t, t.Cleanup, 1, options(mpi.Host), runtime.Config{})
	require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
		c := r.World()
		v, err := r.Alloc(160)
		require.NoError(t, err)
		of := func(n int, d *datatype.Type) mpi.Typed { return mpi.Typed{Memory: v, Count: n, Type: d} }
		ints, floats, none := of(4, datatype.Int32), of(4, datatype.Float32), mpi.InPlaceTyped
		for _, test := range []struct {
			err      error
			expected string
		}{
			{c.BcastTyped(of(-1, datatype.Int32), 0), "mpi: rank 0: Bcast on world: datatype: -1 times int32, expected at least 0"},
			{c.BcastTyped(of(math.MaxInt, datatype.Int32), 0), "elements, expected at most"},
			{c.BcastTyped(of(11, column(t, 2)), 0), "of a memory of 160"},
			{c.BcastTyped(mpi.Typed{Memory: v, Count: 1}, 0), "datatype: a type is missing"},
			{c.BcastTyped(none, 0), "InPlaceTyped, expected elements"},
			{c.BcastTyped(ints, 1), "root 1, expected a rank below 1"},
			{c.ScatterTyped(ints, of(1, twice), 0), "1 times vector have a byte of memory twice, which a receive must not"},
			{c.ScatterTyped(ints, of(-2, datatype.Int32), 0), "-2 times int32, expected at least 0"},
			{c.ScatterTyped(ints, floats, 0), "to send to the rank itself and 4 basic elements ("},
			{c.GatherTyped(of(1, mixed), of(2, datatype.Int32), 0), "2 basic elements ("},
			{c.GatherTyped(ints, of(2, closely), 0), "a byte of memory twice"},
			{c.GatherTyped(ints, none, 0), "InPlaceTyped, expected elements"},
			{c.AllgatherTyped(ints, of(3, datatype.Int32)), "4 basic elements ("},
			{c.AlltoallTyped(ints, none), "Alltoall on world: InPlaceTyped, expected elements"},
			{c.ScattervTyped(of(0, datatype.Int32), []int{1, 1}, nil, ints, 0), "2 numbers and 0 places of elements, expected one for each of 1 ranks"},
			{c.ScattervTyped(of(0, datatype.Int32), []int{4}, []int{37}, ints, 0), "block of rank 0: 4 times int32 at 148 lie in bytes 148 to 164 of a memory of 160"},
			{c.ScattervTyped(of(0, datatype.Int32), []int{4}, []int{-1}, ints, 0), "in bytes -4 to 12 of a memory of 160"},
			{c.GathervTyped(ints, of(0, datatype.Int32), []int{-4}, nil, 0), "block of rank 0: datatype: -4 times int32, expected at least 0"},
			{c.GathervTyped(ints, of(0, datatype.Int32), []int{math.MaxInt}, nil, 0), "expected at most"},
			{c.GathervTyped(ints, of(0, twice), []int{1}, nil, 0), "a byte of memory twice"},
			{c.AllgathervTyped(ints, of(0, datatype.Int32), []int{3}, nil), "4 basic elements ("},
			{c.AlltoallvTyped(of(0, datatype.Int32), []int{2}, nil, of(0, datatype.Int32), []int{3}, nil), "2 basic elements ("},
			{c.AlltoallvTyped(of(0, nil), []int{2}, nil, of(0, datatype.Int32), []int{2}, nil), "datatype: a type is missing"},
			{c.Alltoallw([]mpi.Typed{ints, ints}, []mpi.Typed{ints}), "Alltoallw on world: elements for 2 ranks, expected them for each of 1"},
			{c.Alltoallw([]mpi.Typed{ints}, []mpi.Typed{floats}), "4 basic elements ("},
			{c.Alltoallw(nil, []mpi.Typed{of(1, twice)}), "a byte of memory twice"},
			{c.ReduceTyped(ints, ints, own, 0), "mine is an operation of the program's own, expected a predefined one"},
			{c.ReduceTyped(of(1, mixed), of(1, mixed), mpi.Sum, 0), "sum of struct, expected a type made of one of int32, int64, float32 and float64"},
			{c.ReduceTyped(of(1, datatype.Uint8), of(1, datatype.Uint8), mpi.Sum, 0), "sum of uint8, expected a type made of one of"},
			{c.ReduceTyped(floats, floats, mpi.BAnd, 0), "band is not defined for float32"},
			{c.ReduceTyped(ints, floats, mpi.Sum, 0), "4 basic elements ("},
			{c.ReduceTyped(ints, ints, nil, 0), "a reduction needs an operation and a type"},
		} {
			require.ErrorContains(t, test.err, "mpi: rank 0: ")
			require.ErrorContains(t, test.err, test.expected)
		}
		require.Equal(t, mpi.Stats{}, r.Stats())
		return nil
	}))
	require.NoError(t, w.Run(context.Background()))
}

// Blocks that share a byte are an error, even if each is valid alone. Blocks
// that interleave are not.
func TestTypedBlocksMeet(t *testing.T) {
	w := makeWorld(t, t.Cleanup, 2, options(mpi.Host), runtime.Config{})
	for me := range 2 {
		require.NoError(t, w.Spawn(me, func(r *mpi.Rank) error {
			c := r.World()
			v, err := r.Alloc(160)
			require.NoError(t, err)
			recv := mpi.Typed{Memory: v, At: 80, Type: datatype.Float64}
			send := mpi.Typed{Memory: v, Count: 2, Type: datatype.Float64}
			require.ErrorContains(t, c.AllgathervTyped(send, recv, []int{2, 2}, []int{0, 1}), "blocks of ranks have a byte of memory twice")
			w := []mpi.Typed{{Memory: v, At: 80, Count: 1, Type: column(t, 2)}, {Memory: v, At: 88, Count: 1, Type: column(t, 2)}}
			require.NoError(t, c.Alltoallw([]mpi.Typed{send, send}, w))
			w[1].At = 96
			require.ErrorContains(t, c.Alltoallw([]mpi.Typed{send, send}, w), "blocks of ranks have a byte of memory twice")
			return nil
		}))
	}
	require.NoError(t, w.Run(context.Background()))
}

// The error names ranks with other basic types in the same number of bytes, and
// ranks with another length.
func TestTypedCollectivesDoNotMatch(t *testing.T) {
	w := makeWorld(t, t.Cleanup, 2, options(mpi.Host), runtime.Config{})
	for me := range 2 {
		require.NoError(t, w.Spawn(me, func(r *mpi.Rank) error {
			v, err := r.Alloc(160)
			require.NoError(t, err)
			kind := []*datatype.Type{datatype.Int32, datatype.Float32}[me]
			return r.World().BcastTyped(mpi.Typed{Memory: v, Count: 4, Type: kind}, 0)
		}))
	}
	require.ErrorContains(t, w.Run(context.Background()), "the calls of world do not match: call 1 is Bcast of 16 B, 4 basic elements (")
}

// Elements in one piece are sent and received in place. If they are bytes, they
// match calls with bytes.
func TestTypedCollectivesInOnePiece(t *testing.T) {
	w := makeWorld(t, t.Cleanup, 3, options(mpi.Host), runtime.Config{})
	for me := range 3 {
		require.NoError(t, w.Spawn(me, func(r *mpi.Rank) error {
			c := r.World()
			v, err := message(r, 48, me)
			require.NoError(t, err)
			if me == 1 {
				return c.Bcast(v, 0)
			}
			return c.BcastTyped(mpi.Typed{Memory: v, Count: 48, Type: datatype.Byte}, 0)
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	s := w.Stats()
	require.Zero(t, s.PackedByCore+s.UnpackedByCore+s.UnpackedByNIC)
}
