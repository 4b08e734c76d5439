// Package typetest draws datatypes for tests.
package typetest

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/datatype"
)

// Draw makes a random type with constructors nested to at most depth.
func Draw(t *rapid.T, depth int) *datatype.Type { return Source{}.Draw(t, depth) }

// Reach returns the offset of the first byte of count elements and the offset
// behind the last, with displacement 0 included.
func Reach(d *datatype.Type, count int) (low, high int64) {
	if count == 0 || d.Size() == 0 {
		return 0, 0
	}
	lb, n := d.TrueExtent()
	_, extent := d.Extent()
	last := int64(count-1) * extent
	return min(0, lb, lb+last), max(0, lb+n, lb+n+last)
}

// Source draws types. MPI libraries differ from the standard for empty types
// and for elements that are not aligned. With Plain there are no such types.
type Source struct{ Plain bool }

// Draw makes a random type with constructors nested to at most depth, small
// enough for the literal model.
func (s Source) Draw(t *rapid.T, depth int) *datatype.Type {
	for {
		d := s.construct(t, depth)
		if d.Size() <= 1<<11 && (!s.Plain || d.Size() > 0) {
			return d
		}
		depth--
	}
}

// number draws a count.
func (s Source) number() *rapid.Generator[int] {
	if s.Plain {
		return rapid.IntRange(1, 4)
	}
	return rapid.IntRange(0, 4)
}

// address draws a displacement of bytes.
func (s Source) address(low, high int64) *rapid.Generator[int64] {
	if !s.Plain {
		return rapid.Int64Range(low, high)
	}
	return rapid.Map(rapid.Int64Range(low/8, high/8), func(v int64) int64 { return 8 * v })
}

func (s Source) construct(t *rapid.T, depth int) *datatype.Type {
	if depth <= 0 || rapid.IntRange(0, 5).Draw(t, "named") == 0 {
		return rapid.SampledFrom(datatype.NamedTypes()).Draw(t, "type")
	}
	old := s.Draw(t, depth-1)
	var d *datatype.Type
	var err error
	switch kind := rapid.IntRange(0, 7).Draw(t, "constructor"); kind {
	case 0:
		d, err = datatype.Contiguous(s.number().Draw(t, "count"), old)
	case 1:
		stride := rapid.IntRange(-5, 7).Draw(t, "stride")
		// Open MPI 4.1 takes -1 for "the type's extent"
		if _, extent := old.Extent(); s.Plain && int64(stride)*extent == -1 {
			stride = -2
		}
		d, err = datatype.Vector(s.number().Draw(t, "count"), s.number().Draw(t, "length"), stride, old)
	case 2:
		d, err = datatype.Hvector(s.number().Draw(t, "count"), s.number().Draw(t, "length"), s.address(-50, 90).Draw(t, "stride"), old)
	case 3:
		d, err = s.listed(t, depth, old)
	case 4:
		least := int64(-20)
		if s.Plain {
			least = 8
		}
		d, err = datatype.Resized(old, s.address(-30, 30).Draw(t, "lb"), s.address(least, 60).Draw(t, "extent"))
	case 5:
		d, err = datatype.Dup(old)
	case 6:
		d, err = drawSubarray(t, old)
	default:
		d, err = drawDarray(t, old)
	}
	require.NoError(t, err)
	return d
}

// listed draws one of the constructors that take lists.
func (s Source) listed(t *rapid.T, depth int, old *datatype.Type) (*datatype.Type, error) {
	blocks := max(s.number().Draw(t, "blocks")+rapid.IntRange(-1, 1).Draw(t, "more"), s.number().Draw(t, "least")/4)
	if s.Plain {
		blocks = max(blocks, 1)
	}
	lengths := rapid.SliceOfN(s.number(), blocks, blocks)
	places := rapid.SliceOfN(rapid.IntRange(-6, 12), blocks, blocks)
	bytes := rapid.SliceOfN(s.address(-40, 90), blocks, blocks)
	switch rapid.IntRange(0, 4).Draw(t, "list") {
	case 0:
		return datatype.Indexed(lengths.Draw(t, "lengths"), places.Draw(t, "places"), old)
	case 1:
		return datatype.Hindexed(lengths.Draw(t, "lengths"), bytes.Draw(t, "places"), old)
	case 2:
		return datatype.IndexedBlock(s.number().Draw(t, "length"), places.Draw(t, "places"), old)
	case 3:
		return datatype.HindexedBlock(s.number().Draw(t, "length"), bytes.Draw(t, "places"), old)
	}
	types := make([]*datatype.Type, max(blocks, 1))
	for i := range types {
		types[i] = s.Draw(t, depth-1)
	}
	n := len(types)
	return datatype.Struct(rapid.SliceOfN(s.number(), n, n).Draw(t, "lengths"), rapid.SliceOfN(s.address(-40, 90), n, n).Draw(t, "places"), types)
}

var orders = rapid.SampledFrom([]datatype.Order{datatype.OrderC, datatype.OrderFortran})

func drawSubarray(t *rapid.T, old *datatype.Type) (*datatype.Type, error) {
	dims := rapid.IntRange(1, 3).Draw(t, "dimensions")
	sizes, sub, starts := make([]int, dims), make([]int, dims), make([]int, dims)
	for i := range dims {
		sizes[i] = rapid.IntRange(1, 5).Draw(t, "size")
		sub[i] = rapid.IntRange(1, sizes[i]).Draw(t, "part")
		starts[i] = rapid.IntRange(0, sizes[i]-sub[i]).Draw(t, "start")
	}
	return datatype.Subarray(sizes, sub, starts, orders.Draw(t, "order"), old)
}

func drawDarray(t *rapid.T, old *datatype.Type) (*datatype.Type, error) {
	dims := make([]datatype.Dimension, rapid.IntRange(1, 3).Draw(t, "dimensions"))
	size := 1
	for i := range dims {
		d := datatype.Dimension{Elements: rapid.IntRange(1, 7).Draw(t, "size"), Processes: 1, Argument: datatype.DefaultDistribution}
		d.Distribution = datatype.Distribution(rapid.IntRange(0, 2).Draw(t, "distribution"))
		if d.Distribution != datatype.DistributeNone {
			d.Processes = rapid.IntRange(1, 3).Draw(t, "processes")
		}
		if least := (d.Elements-1)/d.Processes + 1; rapid.Bool().Draw(t, "argument") {
			if d.Distribution == datatype.DistributeCyclic {
				least = 1
			}
			d.Argument = rapid.IntRange(least, least+3).Draw(t, "block")
		}
		dims[i] = d
		size *= d.Processes
	}
	return datatype.Darray(size, rapid.IntRange(0, size-1).Draw(t, "rank"), dims, orders.Draw(t, "order"), old)
}
