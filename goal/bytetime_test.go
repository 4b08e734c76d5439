package goal

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByteTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"6": "6", "0": "0", "6.0": "6", "0.04": "0.04", "0.180": "0.18", "0.0186264515": "0.0186264515",
		"007.25": "7.25", "0.000000000000000001": "0.000000000000000001", "576460752303423488": "576460752303423488",
	} {
		v, err := ParseByteTime(text)
		require.NoError(t, err, text)
		require.Equal(t, want, v.String())
		written, err := json.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, want, string(written))
		for _, size := range []uint64{0, 1, 2, 26, 101, 65536, 1 << 30, 1<<59 + 1, math.MaxUint64} {
			exact, _ := new(big.Rat).SetString(want)
			exact.Mul(exact, new(big.Rat).SetUint64(max(size, 1)-1))
			ns := new(big.Int).Quo(exact.Num(), exact.Denom())
			fits := ns.Cmp(big.NewInt(MaxCost)) <= 0
			require.Equal(t, fits, v.fits(size), "%s x %d", text, size)
			if fits {
				require.Equal(t, ns.Int64(), v.after(size), "%s x %d", text, size)
			}
		}
	}
	for _, text := range []string{"", ".5", "5.", "-1", "+1", "1e-3", "0.1.2", "0,5", "0.-5", "0x1", "9223372036854775808", "0.0000000000000000001"} {
		_, err := ParseByteTime(text)
		require.ErrorContains(t, err, "expected", text)
	}
	a, err := ParseByteTime("6.000")
	require.NoError(t, err)
	require.Equal(t, PerByte(6), a, "equal values compare equal")
}

// A product of doubles loses the last nanosecond: 100 x 0.29 is then 28.99...96.
func TestFractionsAreExact(t *testing.T) {
	t.Parallel()
	p := DefaultParams()
	p.ByteGap, _ = ParseByteTime("0.29")
	res, err := NewSimulator(generate(t, "gather", GenParams{Ranks: 2, Size: 101, Root: 1})).Run(p)
	require.NoError(t, err)
	require.Equal(t, []int64{1500, 1500 + 2500 + 1500 + 29}, res.FinishNS)

	p.ByteGap, _ = ParseByteTime("576460752303423489.5")
	require.ErrorContains(t, p.Validate(), "goal: G: 576460752303423489.5 ns, expected 0 to 576460752303423488")
}
