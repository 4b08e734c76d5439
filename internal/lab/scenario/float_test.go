package scenario

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/manifest"
)

func one(t require.TestingT, typ manifest.Type, text string) (float64, error) {
	var f Float
	require.NoError(t, f.UnmarshalText([]byte(text)), text)
	return f.eval(&env{}, typ)
}

const f32, f64 = manifest.F32, manifest.F64

// A value outside the type is an error. It does not become an infinity, zero or
// another number.
func TestFloatsThatDoNotFit(t *testing.T) {
	for text, want := range map[string]string{
		"1e300":               "f32: 1e+300, expected at most MaxFloat32 3.4028235e+38: it does not fit 4 bytes",
		"-1e300":              "f32: -1e+300, expected at least -MaxFloat32 -3.4028235e+38: it does not fit 4 bytes",
		"3.5e38":              "f32: 3.5e+38, expected at most MaxFloat32 3.4028235e+38: it does not fit 4 bytes",
		"1PiB*1PiB*1PiB*1PiB": "f32: 1.60694e+60, expected at most MaxFloat32 3.4028235e+38: it does not fit 4 bytes",
		"1e-50":               "f32: 1e-50, expected 0 or at least 1e-45 away from it: 4 bytes would hold 0",
		"16777217":            "f32: 16777217, expected a whole number of at most 24 binary digits: 4 bytes would hold 16777216",
		"16MiB + 1":           "f32: 16777217, expected a whole number of at most 24 binary digits: 4 bytes would hold 16777216",
		"-16777217":           "f32: -16777217, expected a whole number of at most 24 binary digits: 4 bytes would hold -16777216",
		"1e400":               "f32: 1e400, expected at most MaxFloat32 3.4028235e+38: it does not fit 4 bytes",
		"0x1p-1100":           "f32: 0x1p-1100, expected 0 or at least 1e-45 away from it: 4 bytes would hold 0",
		"f64 1e400":           "f64: 1e400, expected at most MaxFloat64 1.7976931348623157e+308: it does not fit 8 bytes",
		"f64 -1e400":          "f64: -1e400, expected at least -MaxFloat64 -1.7976931348623157e+308: it does not fit 8 bytes",
		"f64 1e-400":          "f64: 1e-400, expected 0 or at least 5e-324 away from it: 8 bytes would hold 0",
		"f64 9007199254740993": "f64: 9007199254740993, expected a whole number of at most 53 binary digits: " +
			"8 bytes would hold 9007199254740992",
	} {
		typ := f32
		if rest, ok := strings.CutPrefix(text, "f64 "); ok {
			typ, text = f64, rest
		}
		_, err := one(t, typ, text)
		require.EqualError(t, err, want)
	}
	for text, want := range map[string]float64{
		"Inf": math.Inf(1), "-inf": math.Inf(-1), "0": 0, "-0.0": 0, "0e400": 0, "0x0p5": 0, "0x1p-3": 0.125, "1e38": float64(float32(1e38)),
		"0.1": float64(float32(0.1)), "1e-45": math.SmallestNonzeroFloat32, "1PiB*1PiB": 0x1p100, "16777216": 1 << 24,
	} {
		v, err := one(t, f32, text)
		require.NoError(t, err, text)
		require.Equal(t, want, v, text)
	}
	v, err := one(t, f32, "nan")
	require.NoError(t, err)
	require.True(t, math.IsNaN(v))
}

// Any decimal number gives the nearest value of the type or an error, checked
// with exact arithmetic. No finite number becomes infinite, and no other number
// becomes 0.
func TestFloatsAreNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mantissa := rapid.Int64Range(1, 1<<62).Draw(t, "mantissa")
		exponent := rapid.IntRange(-345, 330).Draw(t, "exponent")
		if rapid.Bool().Draw(t, "negative") {
			mantissa = -mantissa
		}
		text := fmt.Sprintf("%de%d", mantissa, exponent)
		exact, _, err := big.ParseFloat(text, 10, 2000, big.ToNearestEven)
		require.NoError(t, err)
		short, _ := exact.Float32()
		double, _ := exact.Float64()
		for typ, want := range map[manifest.Type]float64{f32: float64(short), f64: double} {
			v, err := one(t, typ, text)
			if math.IsInf(want, 0) || want == 0 {
				require.ErrorContains(t, err, string(typ)+": ", text)
				continue
			}
			require.NoError(t, err, text)
			require.Equal(t, want, v, text)
		}
	})
}

// A whole number is held exactly or refused.
func TestWholeFloatsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n") >> rapid.IntRange(0, 63).Draw(t, "shift")
		for typ, exact := range map[manifest.Type]bool{f32: exact32(n), f64: exact64(n)} {
			v, err := one(t, typ, strconv.FormatInt(n, 10))
			if !exact {
				require.ErrorContains(t, err, "expected a whole number of at most")
				continue
			}
			require.NoError(t, err)
			require.Equal(t, big.NewInt(n).String(), big.NewFloat(v).Text('f', 0))
		}
	})
}

func exact32(n int64) bool {
	_, accuracy := new(big.Float).SetInt64(n).Float32()
	return accuracy == big.Exact
}

func exact64(n int64) bool {
	_, accuracy := new(big.Float).SetInt64(n).Float64()
	return accuracy == big.Exact
}
