package part

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
)

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
