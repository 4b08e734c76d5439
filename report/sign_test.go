package report

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A number that rounds to 0 has no sign. All others keep theirs.
func TestZeroHasNoSign(t *testing.T) {
	points := Column{Kind: Points}
	for v, want := range map[float64]string{
		-0.0004: "0.0 points", 0.0004: "0.0 points", math.Copysign(0, -1): "0.0 points",
		-0.0006: "-0.1 points", 0.0006: "+0.1 points", 0.143: "+14.3 points",
	} {
		require.Equal(t, want, show(points, scale{divisor: 1}, v))
	}
	require.Equal(t, "0", exactNumber(math.Copysign(0, -1)))
	rapid.Check(t, func(t *rapid.T) {
		v, decimals := rapid.Float64Range(-100, 100).Draw(t, "v"), rapid.IntRange(0, 3).Draw(t, "decimals")
		s := fixed(v, decimals)
		back, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		require.InDelta(t, v, back, 0.5000001*math.Pow10(-decimals))
		require.Equal(t, back < 0, strings.HasPrefix(s, "-"))
		require.Equal(t, back > 0, strings.HasPrefix(signed(v, decimals), "+"))
	})
}
