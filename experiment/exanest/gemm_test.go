package exanest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
)

func multiplied(t *testing.T, mpsocs, n int, overlap, numbers string) *experiment.Result {
	return measured(t, multiply, "exanest-gemm", experiment.Values{"mpsocs": mpsocs, "n": n, "overlap": overlap, "numbers": numbers})
}

// An FPGA has the report's 275 GFLOPS within a tenth, and no more than the cycles
// of its tiles allow; four of a board have more than 1 TFLOPS (TR-488 §7).
func TestGemmRate(t *testing.T) {
	one := multiplied(t, 1, 2048, overlapNone, numbersNone)
	require.InEpsilon(t, 275, one.Float(rateColumn), 0.1)
	require.Less(t, one.Float(rateColumn), 307.2*4096/4200)
	require.Greater(t, multiplied(t, 4, 4096, overlapHalo, numbersNone).Float(rateColumn), 1000.)
}

// With overlap a step takes as long as the longer of multiplication and
// exchange, without as long as both: of two steps, one has an exchange.
func TestGemmOverlaps(t *testing.T) {
	for _, n := range []int{256, 512, 1024} {
		alone := multiplied(t, 1, n/2, overlapNone, numbersNone).Time("time")
		none, halo := multiplied(t, 4, n, overlapNone, numbersNone).Time("time"), multiplied(t, 4, n, overlapHalo, numbersNone).Time("time")
		exchange := none - 2*alone
		require.Positive(t, exchange)
		require.InEpsilon(t, (max(alone, exchange) + alone).Seconds(), halo.Seconds(), 0.02, "n %d", n)
	}
}

// Numbers change no time, and sides that are no multiple of a tile are right,
// too: a run compares every element.
func TestGemmNumbersTakeNoTime(t *testing.T) {
	require.Equal(t, multiplied(t, 4, 300, overlapHalo, numbersCompared).Time("time"), multiplied(t, 4, 300, overlapHalo, numbersNone).Time("time"))
	multiplied(t, 16, 260, overlapHalo, numbersCompared)
}

// A board is adjacent in the grid, and places and ranks are inverse.
func TestGemmGrid(t *testing.T) {
	for _, q := range []int{1, 2, 4, 6} {
		m := &multiplying{q: q}
		require.Equal(t, q, gridOf(q*q))
		for rank := range q * q {
			i, j := m.place(rank)
			require.Equal(t, rank, m.rankAt(i, j))
			require.Equal(t, rank, m.rankAt(i-q, j+q))
			if q > 1 {
				require.Equal(t, rank/4, m.rankAt(i/2*2, j/2*2)/4)
			}
		}
	}
}

// What cannot be multiplied is one clear error.
func TestGemmRefuses(t *testing.T) {
	for _, c := range []struct {
		profile   string
		mpsocs, n int
		overlap   string
		want      string
	}{
		{"exanest-gemm", 9, 9, overlapNone, "--mpsocs: 9, expected 1 or whole boards in a square: the square of an even number"},
		{"exanest-gemm", 4, 513, overlapNone, "--n: 513, expected a multiple of 2 for 4 MPSoCs"},
		{"exanest-gemm", 1, 512, overlapHalo, "one MPSoC has no neighbours: it has overlap none alone"},
		{"exanest", 1, 512, overlapNone, "profile exanest: serve.gemm names no accelerator, as that of exanest-gemm does"},
	} {
		d, err := profile.Load(c.profile)
		require.NoError(t, err)
		_, err = multiply.At(d, experiment.Values{"mpsocs": c.mpsocs, "n": c.n, "overlap": c.overlap, "numbers": numbersNone})
		require.ErrorContains(t, err, c.want)
	}
}
