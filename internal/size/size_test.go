package size

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "8": 8, "4KiB": 4096, "1.5 MiB": 3 << 19, "1e3": 1000, "2.5e1kB": 25_000, "9007199254740991": 1<<53 - 1, "8191TiB": 8191 << 40,
		"0e999999999": 0, "7PiB": 7 << 50, "0.0009765625KiB": 1,
	} {
		n, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{
		"", "B", "KiB", "eight", "inf", "nan", "0x10", "0x1p4", "1,5KiB", "--1", "1" + strings.Repeat("0", 500) + "e-500",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "expected a number of bytes such as", text)
	}
	for _, text := range []string{
		"-1", "1.5", "0.3KiB", "9007199254740992", "8PiB", "1e30", "1e999999999", "1e-999999999", "4503599627370496.5", "4.00000000000000000001", "1e-400",
		"4398046511104.0001KiB",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, "expected a whole number of bytes from 0 to 2^53", text)
	}
}

// Exact agrees with rational arithmetic for every number of digits before and
// after the point, exponent and factor.
func TestExactRoundsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("%d.%se%d", rapid.Int64().Draw(t, "whole"), rapid.StringMatching("[0-9]{1,20}").Draw(t, "fraction"), rapid.IntRange(-25, 25).Draw(t, "exponent"))
		factor := rapid.SampledFrom([]int64{1, 1000, 1 << 10, 1 << 50}).Draw(t, "factor")
		want, ok := new(big.Rat).SetString(text)
		require.True(t, ok)
		want.Mul(want, new(big.Rat).SetInt64(factor))
		n, err := Exact(text, factor)
		if most := new(big.Rat).SetInt64(Most); want.IsInt() && new(big.Rat).Abs(want).Cmp(most) <= 0 {
			require.NoError(t, err, text)
			require.Equal(t, want.Num().Int64(), n, text)
		} else {
			require.Error(t, err, text)
		}
	})
}
