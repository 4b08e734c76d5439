package datatype_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/datatype"
)

// The error for an invalid argument names it.
func TestBadArguments(t *testing.T) {
	for _, test := range append(badBlocks(), badArrays()...) {
		t.Run(test.expected, func(t *testing.T) {
			made, err := test.make()
			require.ErrorContains(t, err, "datatype: "+test.expected)
			require.Nil(t, made)
		})
	}
}

// bad is a constructor call with invalid arguments.
type bad struct {
	expected string
	make     func() (*datatype.Type, error)
}

const far = math.MaxInt64 / 3

func badBlocks() []bad {
	i32 := datatype.Int32
	return []bad{
		{"contiguous: count is -1, expected at least 0", func() (*datatype.Type, error) { return datatype.Contiguous(-1, i32) }},
		{"contiguous: a type is missing", func() (*datatype.Type, error) { return datatype.Contiguous(1, nil) }},
		{"dup: a type is missing", func() (*datatype.Type, error) { return datatype.Dup(&datatype.Type{}) }},
		{"vector: block length is -2, expected at least 0", func() (*datatype.Type, error) { return datatype.Vector(1, -2, 1, i32) }},
		{"hvector: count is -3, expected at least 0", func() (*datatype.Type, error) { return datatype.Hvector(-3, 1, 1, i32) }},
		{"indexed: length of block 1 is -4, expected at least 0", func() (*datatype.Type, error) {
			return datatype.Indexed([]int{1, -4}, []int{0, 0}, i32)
		}},
		{"hindexed: 2 lengths, but 1 displacements or types, expected as many", func() (*datatype.Type, error) {
			return datatype.Hindexed([]int{1, 2}, []int64{0}, i32)
		}},
		{"struct: 1 lengths, but 2 displacements or types, expected as many", func() (*datatype.Type, error) {
			return datatype.Struct([]int{1}, []int64{0}, []*datatype.Type{i32, i32})
		}},
		{"struct: a type is missing", func() (*datatype.Type, error) { return datatype.Struct([]int{1}, []int64{0}, []*datatype.Type{nil}) }},
		{"contiguous: size or bounds are beyond", func() (*datatype.Type, error) { return datatype.Contiguous(far, i32) }},
		{"vector: size or bounds are beyond", func() (*datatype.Type, error) { return datatype.Vector(2, 1, far, i32) }},
		{"hvector: size or bounds are beyond", func() (*datatype.Type, error) { return datatype.Hvector(3, 1, math.MinInt64, i32) }},
		{"indexed: size or bounds are beyond", func() (*datatype.Type, error) { return datatype.Indexed([]int{1}, []int{-far}, i32) }},
		{"indexed block: size or bounds are beyond", func() (*datatype.Type, error) { return datatype.IndexedBlock(1, []int{far}, i32) }},
		{"hindexed block: size or bounds are beyond", func() (*datatype.Type, error) { return datatype.HindexedBlock(1, []int64{math.MaxInt64}, i32) }},
		{"struct: size or bounds are beyond", func() (*datatype.Type, error) {
			return datatype.Struct([]int{1}, []int64{math.MinInt64}, []*datatype.Type{i32})
		}},
		{"resized: bounds are beyond", func() (*datatype.Type, error) { return datatype.Resized(i32, math.MaxInt64, 1) }},
	}
}

func badArrays() []bad {
	i32 := datatype.Int32
	dims := func(d datatype.Dimension) []datatype.Dimension {
		return []datatype.Dimension{d, {Elements: 4, Processes: 1}}
	}
	return []bad{
		{"subarray: no dimension", func() (*datatype.Type, error) { return datatype.Subarray(nil, nil, nil, datatype.OrderC, i32) }},
		{"subarray: 1 starts for 2 dimensions", func() (*datatype.Type, error) {
			return datatype.Subarray([]int{2, 2}, []int{1, 1}, []int{0}, datatype.OrderC, i32)
		}},
		{"subarray: dimension 1: 3 elements from 2 on of 4, expected a part of them", func() (*datatype.Type, error) {
			return datatype.Subarray([]int{2, 4}, []int{1, 3}, []int{0, 2}, datatype.OrderC, i32)
		}},
		{"subarray: order 7, expected C or Fortran", func() (*datatype.Type, error) { return datatype.Subarray([]int{2}, []int{1}, []int{0}, 7, i32) }},
		{"darray: rank 2 of 2 in a grid of 2, expected one of them", func() (*datatype.Type, error) {
			return datatype.Darray(2, 2, dims(datatype.Dimension{Elements: 3, Distribution: datatype.DistributeBlock, Argument: -1, Processes: 2}), datatype.OrderC, i32)
		}},
		{"darray: the grid of processes is not of 3", func() (*datatype.Type, error) {
			return datatype.Darray(3, 0, dims(datatype.Dimension{Elements: 3, Distribution: datatype.DistributeBlock, Argument: -1, Processes: 2}), datatype.OrderC, i32)
		}},
		{"darray: dimension 0: blocks of 1 elements on 2 processes do not hold 3", func() (*datatype.Type, error) {
			return datatype.Darray(2, 0, dims(datatype.Dimension{Elements: 3, Distribution: datatype.DistributeBlock, Argument: 1, Processes: 2}), datatype.OrderC, i32)
		}},
		{"darray: dimension 0: 2 processes for one that is not distributed, expected 1", func() (*datatype.Type, error) {
			return datatype.Darray(2, 0, dims(datatype.Dimension{Elements: 3, Processes: 2}), datatype.OrderC, i32)
		}},
		{"subarray: size or bounds are beyond", func() (*datatype.Type, error) {
			return datatype.Subarray([]int{far, far}, []int{1, 1}, []int{0, 0}, datatype.OrderC, i32)
		}},
		{"darray: size or bounds are beyond", func() (*datatype.Type, error) {
			return datatype.Darray(1, 0, []datatype.Dimension{{Elements: far, Processes: 1}, {Elements: far, Processes: 1}}, datatype.OrderC, i32)
		}},
	}
}

// Invalid uses of a type are errors, too.
func TestBadUses(t *testing.T) {
	v, err := datatype.Vector(2, 1, 2, datatype.Int32) // bytes 0 to 3 and 8 to 11
	require.NoError(t, err)
	require.EqualError(t, v.Pack(make([]byte, 8), make([]byte, 11), 0, 1), "datatype: 1 times vector at 0 lie in bytes 0 to 12 of a memory of 11")
	require.EqualError(t, v.Unpack(make([]byte, 12), 0, make([]byte, 7), 1), "datatype: 1 times vector in a stream of 7 bytes, expected 8")
	require.EqualError(t, v.Pack(nil, nil, 0, -1), "datatype: -1 times vector, expected at least 0")
	require.ErrorContains(t, v.Pack(nil, nil, 0, math.MaxInt64/3), "size or bounds are beyond")
	for _, at := range []int{math.MaxInt, math.MinInt} {
		require.EqualError(t, v.Unpack(make([]byte, 12), at, make([]byte, 8), 1), fmt.Sprintf("datatype: 1 times vector at %d, outside of a memory of 12", at))
	}
	require.EqualError(t, (&datatype.Type{}).Pack(nil, nil, 0, 1), "datatype: a type is missing")
	require.EqualError(t, v.Runs(1, 3, 9, nil), "datatype: bytes 3 to 9 of 8 of 1 times vector")
	_, err = datatype.Int32.Contents()
	require.EqualError(t, err, "datatype: int32 is a named type: no constructor has made it")

	// Two combs of more than 2^24 teeth, one in the gaps of the other.
	comb, err := datatype.Vector(1<<24, 1, 2, datatype.Byte)
	require.NoError(t, err)
	both, err := datatype.Hindexed([]int{1, 1}, []int64{0, 1}, comb)
	require.NoError(t, err)
	_, err = both.Overlaps(1)
	require.EqualError(t, err, "datatype: whether a type overlaps itself would take 33554432 comparisons, more than 16777216")
}

// Loops stay loops: a constructor with few numbers makes few nodes, and a place
// far in the stream is found at once.
func TestLargeTypes(t *testing.T) {
	row, err := datatype.Vector(1<<20, 3, 5, datatype.Float64)
	require.NoError(t, err)
	plane, err := datatype.Hvector(1<<20, 1, 1<<30, row)
	require.NoError(t, err)
	cube, err := datatype.Contiguous(1000, plane)
	require.NoError(t, err)
	require.EqualValues(t, 1000*24<<40, cube.Size())
	_, extent := cube.Extent()
	whole := int64(1<<20-1)<<30 + (5*(1<<20)-2)*8 // bytes of a plane
	require.Equal(t, 1000*whole, extent)
	var at []int64
	from := int64(7)*24<<40 + int64(9)*24<<20 + 11*24 + 20 // plane 7, row 9, block 11, byte 20
	require.NoError(t, cube.Runs(1, from, from+8, func(begin, n int64) { at = append(at, begin, n) }))
	place := 7*whole + 9<<30 + 11*40
	require.Equal(t, []int64{place + 20, 4, place + 40, 4}, at)
	overlaps, err := cube.Overlaps(1)
	require.NoError(t, err)
	require.False(t, overlaps)
}
