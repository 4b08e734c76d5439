package mpirun

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/mpi"
)

// number is a whole number as an element of a type.
func number(t mpi.Type, x int) []byte {
	b := make([]byte, t.Size())
	le := binary.LittleEndian
	switch t {
	case mpi.Int32:
		le.PutUint32(b, uint32(x))
	case mpi.Int64:
		le.PutUint64(b, uint64(x))
	case mpi.Float32:
		le.PutUint32(b, math.Float32bits(float32(x)))
	case mpi.Float64:
		le.PutUint64(b, math.Float64bits(float64(x)))
	}
	return b
}

// The result of a NIC is compared with every rank's vector: one that is off by one
// is wrong, for each type and operation, and the right one is right.
func TestReductionsAreCompared(t *testing.T) {
	for _, kind := range reductionTypes {
		for _, op := range reductionOps {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(1, 5).Draw(t, "ranks")
				c := reductions{map[int][][]byte{}, map[int]int{}}
				want := 0
				for i := range n {
					x := rapid.IntRange(-1000, 1000).Draw(t, "x")
					c.give(0, i, n, number(kind, x))
					switch {
					case i == 0:
						want = x
					case op == mpi.Sum:
						want += x
					case op == mpi.Min:
						want = min(want, x)
					default:
						want = max(want, x)
					}
				}
				require.NoError(t, c.compare(0, number(kind, want), kind, op))
				require.Error(t, c.compare(0, number(kind, want+1), kind, op))
				require.Error(t, c.compare(0, number(kind, want-1), kind, op))
			})
		}
	}
	c := reductions{map[int][][]byte{}, map[int]int{}}
	c.give(0, 0, 2, number(mpi.Int32, 1))
	c.give(0, 1, 2, number(mpi.Int64, 1))
	require.ErrorContains(t, c.compare(0, number(mpi.Int32, 2), mpi.Int32, mpi.Sum), "vectors of 8 and 4 B")
	for range 2 {
		c.drop(0)
	}
	require.Empty(t, c.calls)
}
