package part

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
)

// number returns the only number of a row.
func number(t *testing.T, id string) ledger.Number {
	row, ok := ledger.Find(id)
	require.True(t, ok && len(row.Published.Numbers) == 1, id)
	return row.Published.Numbers[0]
}

// Where PART'22's own numbers have no end that our rule could find, a row is a
// bound; where they leave the end between two sizes, it is a range.
func TestEndsOfThePublishedNumbers(t *testing.T) {
	// 0.1 us more for each page whose transfer takes 3.2 us are no tenth of the time
	// of any number of pages: touching of present pages is alike at 64 KB, and at all
	// larger sizes.
	touch, transfer := number(t, "part22-5.1-09").Best/1000, number(t, "part22-6.1.1-10").Best
	for pages := 1.0; pages <= 1024; pages *= 2 {
		require.True(t, alike(pages*transfer, pages*(transfer+touch)))
	}
	require.InDelta(t, 64, number(t, "part22-5.1-15").Low, 0)
	require.Greater(t, number(t, "part22-5.1-15").High, 4096.0)

	// Touching is faster than PIA up to 1 MB, so that "less than 64 or 256KB" are
	// examples.
	faster := 1024 * number(t, "part22-5.3-07").Best
	require.InDelta(t, 64, number(t, "part22-5.4-01").Low, 0)
	require.Greater(t, number(t, "part22-5.4-01").High, faster)

	// Up to 16 KB time-outs make no difference and from 256 KB they do. Sizes of Fig.
	// 15 grow fourfold, so that the end is 16 or 64 KB.
	ends := number(t, "part22-6.1.2-03")
	require.InDelta(t, 4*ends.Low, ends.High, 0)
	require.InDelta(t, number(t, "part22-6.1.2-05").Best, 4*ends.High, 0)
}

// Knees are the last size of an unbroken range, from below or from above. If
// there is none they are 0.
func TestKnees(t *testing.T) {
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	m := &experiment.Measured{}
	for _, size := range []int{4096, 8192, 16384, 32768} {
		p, err := pagefault.At(device, experiment.Values{"policy": policyTransfer, "size": size})
		require.NoError(t, err)
		m.Results = append(m.Results, &experiment.Result{Point: p})
	}
	require.Equal(t, []string{"size=4096", "size=8192", "size=16384", "size=32768"}, eachOf(m, "size"))
	without := func(sizes ...string) func(is string) bool {
		return func(is string) bool {
			for _, size := range sizes {
				if is == size {
					return false
				}
			}
			return true
		}
	}
	for _, test := range []struct {
		not          []string
		upTo, fromOn float64
	}{
		{nil, 32, 4},
		{[]string{"size=16384"}, 8, 32},
		{[]string{"size=4096", "size=32768"}, 0, 0},
	} {
		require.InDelta(t, test.upTo, upTo(m, without(test.not...)), 0)
		require.InDelta(t, test.fromOn, fromOn(m, without(test.not...)), 0)
		require.Equal(t, test.not == nil, always(m, "size", without(test.not...)))
	}
}

// The furthest number is that with the largest factor to the nearer end, on
// either side.
func TestFurthest(t *testing.T) {
	for _, test := range []struct {
		numbers []float64
		want    float64
	}{
		{[]float64{2.5, 3.3, 1.9}, 3.3},
		{[]float64{2.5, 3.1, 1}, 1},
		{[]float64{2.5}, 2.5},
	} {
		require.InDelta(t, test.want, furthest(test.numbers, 2, 3), 0)
	}
	require.True(t, alike(100, 110))
	require.False(t, alike(100, 111))
	require.False(t, alike(111, 100))
}
