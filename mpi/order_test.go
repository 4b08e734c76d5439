package mpi_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
)

// folded returns the summands of the package documentation. With p the largest
// power of two up to n, the first 2(n-p) ranks are added in pairs.
func folded(x []float64) (y []float64) {
	p := 1
	for 2*p <= len(x) {
		p *= 2
	}
	rem := len(x) - p
	for i := range rem {
		y = append(y, x[2*i]+x[2*i+1])
	}
	return append(y, x[2*rem:]...)
}

// balanced adds the sum over the lower half and the sum over the upper half.
func balanced(x []float64) float64 {
	if len(x) == 1 {
		return x[0]
	}
	return balanced(x[:len(x)/2]) + balanced(x[len(x)/2:])
}

// butterfly adds the sum over the even places and the sum over the odd ones.
func butterfly(x []float64) float64 {
	if len(x) == 1 {
		return x[0]
	}
	half := make([]float64, len(x)/2)
	for i := range half {
		half[i] = x[i] + x[i+len(half)]
	}
	return butterfly(half)
}

// binomial adds the sum over the first half of span places and the sum over the
// second half. Places that do not exist add nothing.
func binomial(x []float64, span int) float64 {
	if span == 1 {
		return x[0]
	}
	sum := binomial(x, span/2)
	if span/2 < len(x) {
		sum += binomial(x[span/2:], span/2)
	}
	return sum
}

// prefix is the sum up to a rank. The bits of its number select the groups to
// add, the nearest first, each in front of the sum so far.
func prefix(x []float64, rank int) float64 {
	sum := x[rank]
	for d := 1; d <= rank; d *= 2 {
		if rank&d != 0 {
			from := rank &^ (2*d - 1)
			sum = balanced(x[from:from+d]) + sum
		}
	}
	return sum
}

// rotated returns the summands counted from the root.
func rotated(x []float64, root int) []float64 {
	return append(append([]float64(nil), x[root:]...), x[:root]...)
}

func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

// Sums that round follow, bit for bit, the order in the package documentation,
// for short and long vectors.
func TestOrderOfSummation(t *testing.T) {
	const n = 600 // above 2048 B
	for _, algorithms := range mpi.AlgorithmChoices() {
		for _, ranks := range []int{1, 2, 3, 5, 6, 8, 11, 16, 23} {
			x := make([][]float64, n) // by element and rank
			rng := rand.New(rand.NewPCG(uint64(ranks), 7))
			for i := range x {
				for range ranks {
					x[i] = append(x[i], rng.NormFloat64()*math.Exp(10*rng.NormFloat64()))
				}
			}
			x[5][0], x[6][ranks-1], x[7][ranks/2] = math.NaN(), math.Inf(1), math.Copysign(0, -1)
			order(t, ranks, algorithms, x)
		}
	}
}

func order(t *testing.T, ranks int, algorithms mpi.Algorithms, x [][]float64) {
	w := worldOf(t, "spin-int", mpi.Options{Matching: mpi.Host, Eager: 8192, Buffers: 4, BufferBytes: 1 << 16, Algorithms: algorithms, Ranks: ranks})
	defer func() { require.NoError(t, w.Cluster().Close()) }()
	root := ranks * 2 / 3
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			c := r.World()
			in, err := r.Alloc(8 * len(x))
			require.NoError(t, err)
			out, err := r.Alloc(8 * len(x))
			require.NoError(t, err)
			for i, b := 0, in.Write(); i < len(x); i++ {
				binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x[i][rank]))
			}
			check := func(what string, n int, want func(x []float64) float64) {
				for i, b := 0, out.Read(); i < n; i++ {
					got := math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
					require.True(t, same(want(x[i]), got), "%s, %s, %d ranks, rank %d, element %d of %d: %v, expected %v", what, algorithms, ranks, rank, i, n, got, want(x[i]))
				}
			}
			for _, n := range []int{3, len(x)} {
				require.NoError(t, c.Allreduce(in.Slice(0, 8*n), out.Slice(0, 8*n), mpi.Float64, mpi.Sum))
				check("allreduce", n, func(x []float64) float64 { return balanced(folded(x)) })
				require.NoError(t, c.Scan(in.Slice(0, 8*n), out.Slice(0, 8*n), mpi.Float64, mpi.Sum))
				check("scan", n, func(x []float64) float64 { return prefix(x, rank) })
				require.NoError(t, c.Reduce(in.Slice(0, 8*n), out.Slice(0, 8*n), mpi.Float64, mpi.Sum, root))
				if rank == root && n == 3 {
					check("reduce", n, func(x []float64) float64 { return binomial(rotated(x, root), 64) })
				} else if rank == root && ranks > 1 {
					check("reduce", n, func(x []float64) float64 { return balanced(folded(x)) })
				}
			}
			counts := make([]int, ranks)
			counts[0] = 8 * len(x)
			require.NoError(t, c.Do(mpi.ReduceScatter{Send: in, Recv: out.Slice(0, counts[rank]), Counts: counts, Type: mpi.Float64, Op: mpi.Sum}))
			if rank == 0 {
				check("reduce_scatter", len(x), func(x []float64) float64 { return butterfly(folded(x)) })
			}
			return nil
		}))
	}
	require.NoError(t, w.Run(context.Background()))
}
