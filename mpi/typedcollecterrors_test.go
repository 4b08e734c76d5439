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
		of := func(n int, d *datatype.Type) mpi.Data { return mpi.Data{Memory: v, Count: n, Type: d} }
		ints, floats, none := of(4, datatype.Int32), of(4, datatype.Float32), mpi.Data{}
		for _, test := range []struct {
			err      error
			expected string
		}{
			{c.Do(mpi.Bcast{Data: of(-1, datatype.Int32)}), "mpi: rank 0: Bcast on world: datatype: -1 times int32, expected at least 0"},
			{c.Do(mpi.Bcast{Data: of(math.MaxInt, datatype.Int32)}), "elements, expected at most"},
			{c.Do(mpi.Bcast{Data: of(11, column(t, 2))}), "of a memory of 160"},
			{c.Do(mpi.Bcast{Data: mpi.Data{Memory: v, Count: 1}}), "Bcast on world: 1 elements at 0 without a Type"},
			{c.Do(mpi.Bcast{Data: none}), "InPlace, expected memory of Alloc"},
			{c.Do(mpi.Bcast{Data: ints, Root: 1}), "root 1, expected a rank below 1"},
			{c.Do(mpi.Scatter{Send: ints, Recv: of(1, twice)}), "1 times vector have a byte of memory twice, which a receive must not"},
			{c.Do(mpi.Scatter{Send: ints, Recv: of(-2, datatype.Int32)}), "-2 times int32, expected at least 0"},
			{c.Do(mpi.Scatter{Send: ints, Recv: floats}), "to send to the rank itself and 4 basic elements ("},
			{c.Do(mpi.Gather{Send: of(1, mixed), Recv: of(2, datatype.Int32)}), "2 basic elements ("},
			{c.Do(mpi.Gather{Send: ints, Recv: of(2, closely)}), "a byte of memory twice"},
			{c.Do(mpi.Gather{Send: ints, Recv: none}), "InPlace, expected memory of Alloc"},
			{c.Do(mpi.Allgather{Send: ints, Recv: of(3, datatype.Int32)}), "4 basic elements ("},
			{c.Do(mpi.Alltoall{Send: ints, Recv: none}), "Alltoall on world: InPlace, expected memory of Alloc"},
			{c.Do(mpi.Scatterv{Send: of(0, datatype.Int32), Counts: []int{1, 1}, Recv: ints}), "2 counts and 0 places, expected one for each of 1 ranks"},
			{c.Do(mpi.Scatterv{Send: of(0, datatype.Int32), Counts: []int{4}, Places: []int{37}, Recv: ints}), "block of rank 0: 4 times int32 at 148 lie in bytes 148 to 164 of a memory of 160"},
			{c.Do(mpi.Scatterv{Send: of(0, datatype.Int32), Counts: []int{4}, Places: []int{-1}, Recv: ints}), "in bytes -4 to 12 of a memory of 160"},
			{c.Do(mpi.Gatherv{Send: ints, Recv: of(0, datatype.Int32), Counts: []int{-4}}), "block of rank 0: datatype: -4 times int32, expected at least 0"},
			{c.Do(mpi.Gatherv{Send: ints, Recv: of(0, datatype.Int32), Counts: []int{math.MaxInt}}), "expected at most"},
			{c.Do(mpi.Gatherv{Send: ints, Recv: of(0, twice), Counts: []int{1}}), "a byte of memory twice"},
			{c.Do(mpi.Allgatherv{Send: ints, Recv: of(0, datatype.Int32), Counts: []int{3}}), "4 basic elements ("},
			{c.Do(mpi.Alltoallv{Send: of(0, datatype.Int32), Counts: []int{2}, Recv: of(0, datatype.Int32), RecvCounts: []int{3}}), "2 basic elements ("},
			{c.Do(mpi.Alltoallv{Send: of(0, nil), Counts: []int{2}, Recv: of(0, datatype.Int32), RecvCounts: []int{2}}), "0 basic elements (0) to send to the rank itself and 2 basic elements ("},
			{c.Do(mpi.Alltoallw{Send: []mpi.Data{ints, ints}, Recv: []mpi.Data{ints}}), "Alltoallw on world: elements for 2 ranks, expected them for each of 1"},
			{c.Do(mpi.Alltoallw{Send: []mpi.Data{ints}, Recv: []mpi.Data{floats}}), "4 basic elements ("},
			{c.Do(mpi.Alltoallw{Recv: []mpi.Data{of(1, twice)}}), "a byte of memory twice"},
			{c.Do(mpi.Reduce{Send: ints, Recv: ints, Op: own}), "mine is an operation of the program's own, expected a predefined one"},
			{c.Do(mpi.Reduce{Send: of(1, mixed), Recv: of(1, mixed), Op: mpi.Sum}), "sum of struct, expected a type made of one of int32, int64, float32 and float64"},
			{c.Do(mpi.Reduce{Send: of(1, datatype.Uint8), Recv: of(1, datatype.Uint8), Op: mpi.Sum}), "sum of uint8, expected a type made of one of"},
			{c.Do(mpi.Reduce{Send: floats, Recv: floats, Op: mpi.BAnd}), "band is not defined for float32"},
			{c.Do(mpi.Reduce{Send: ints, Recv: floats, Op: mpi.Sum}), "4 basic elements ("},
			{c.Do(mpi.Reduce{Send: ints, Recv: ints}), "a reduction needs an operation and a type"},
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
			recv := mpi.Data{Memory: v, At: 80, Type: datatype.Float64}
			send := mpi.Data{Memory: v, Count: 2, Type: datatype.Float64}
			require.ErrorContains(t, c.Do(mpi.Allgatherv{Send: send, Recv: recv, Counts: []int{2, 2}, Places: []int{0, 1}}), "blocks of ranks have a byte of memory twice")
			w := []mpi.Data{{Memory: v, At: 80, Count: 1, Type: column(t, 2)}, {Memory: v, At: 88, Count: 1, Type: column(t, 2)}}
			require.NoError(t, c.Do(mpi.Alltoallw{Send: []mpi.Data{send, send}, Recv: w}))
			w[1].At = 96
			require.ErrorContains(t, c.Do(mpi.Alltoallw{Send: []mpi.Data{send, send}, Recv: w}), "blocks of ranks have a byte of memory twice")
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
			return r.World().Do(mpi.Bcast{Data: mpi.Data{Memory: v, Count: 4, Type: kind}})
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
			return c.Do(mpi.Bcast{Data: mpi.Data{Memory: v, Count: 48, Type: datatype.Byte}})
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	s := w.Stats()
	require.Zero(t, s.PackedByCore+s.UnpackedByCore+s.UnpackedByNIC)
}
