package sim

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestTimeText(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Time
		out  string
	}{
		{"65ns", 65000, "65 ns"},
		{"6.7ns", 6700, "6.7 ns"},
		{"20ps", 20, "20 ps"},
		{" 1234 ns ", 1234000, "1.234 µs"},
		{"1.5us", 1500000, "1.5 µs"},
		{"1.5µs", 1500000, "1.5 µs"},
		{"0", 0, "0 s"},
		{"0.001ns", 1, "1 ps"},
		{"2.50 ms", 2500 * Microsecond, "2.5 ms"},
		{".5s", 500 * Millisecond, "500 ms"},
		{"-3ns", -3000, "-3 ns"},
		{"1.000ps", 1, "1 ps"},
		{"9223372.036854775807s", math.MaxInt64, "9223372.036854775807 s"},
	} {
		got, err := ParseTime(c.in)
		require.NoError(t, err, c.in)
		require.Equal(t, c.want, got, c.in)
		require.Equal(t, c.out, got.String())
	}
	for in, want := range map[string]string{
		"":                      `time "": want a number and a unit of s, ms, µs, ns, ps`,
		"5":                     `time "5": want a number and a unit of s, ms, µs, ns, ps`,
		"5 m":                   `time "5 m": want a number and a unit of s, ms, µs, ns, ps`,
		"ns":                    `time "ns": want a decimal number before the unit, got ""`,
		".ns":                   `time ".ns": want a decimal number before the unit, got "."`,
		"1.2.3ns":               `time "1.2.3ns": want a decimal number before the unit, got "1.2.3"`,
		"0.5ps":                 `time "0.5ps": "0.5" has more digits than can be kept exactly`,
		"9223372.036854775808s": `time "9223372.036854775808s": "9223372.036854775808" is out of range`,
		"99999999999999999999s": `time "99999999999999999999s": "99999999999999999999" is out of range`,
	} {
		_, err := ParseTime(in)
		require.EqualError(t, err, want)
	}
	require.Equal(t, "-9223372.036854775808 s", Time(math.MinInt64).String())
	require.Equal(t, 1.5, (1500 * Picosecond).Nanoseconds())
}

func TestTimeTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := Time(rapid.Int64Range(-math.MaxInt64, math.MaxInt64).Draw(t, "ps"))
		got, err := ParseTime(x.String())
		require.NoError(t, err)
		require.Equal(t, x, got)
	})
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"6.7ns", "-1 µs", "0", "1e3s", "9223372.036854775807s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := ParseTime(s); err == nil {
			again, err := ParseTime(x.String())
			require.NoError(t, err)
			require.Equal(t, x, again)
		}
	})
}

func TestRateText(t *testing.T) {
	same := NewRate(20, 1)
	for _, s := range []string{"20ps/B", "0.02 ns/B", "400Gb/s", "0.4Tb/s", "50GB/s", "50000 MB/s"} {
		r, err := ParseRate(s)
		require.NoError(t, err, s)
		require.Equal(t, same, r, s)
		require.Equal(t, "20ps/B", r.String())
	}
	for in, out := range map[string]string{
		"64GiB/s": "64GiB/s", "150 GiB/s": "150GiB/s", "10Gb/s": "800ps/B", "160Gb/s": "50ps/B",
		"3Gb/s": "3Gb/s", "1000/3ps/B": "24Gb/s", "0": "0ps/B", "12.5GB/s": "80ps/B", "8.7GiB/s": "1220703125/11403264ps/B",
	} {
		r, err := ParseRate(in)
		require.NoError(t, err, in)
		require.Equal(t, out, r.String(), in)
		again, err := ParseRate(r.String())
		require.NoError(t, err, r.String())
		require.Equal(t, r, again, in)
	}
	for in, want := range map[string]string{
		"20":       `rate "20": want a number and a unit of ps/B, ns/B, Mb/s, Gb/s, Tb/s, MB/s, GB/s, TB/s, MiB/s, GiB/s`,
		"0Gb/s":    `rate "0Gb/s": want more than nothing per second`,
		"-1ps/B":   `rate "-1ps/B": want a positive number, got "-1"`,
		"1/0ps/B":  `rate "1/0ps/B": want a positive quotient, got "1/0"`,
		"x ps/B":   `rate "x ps/B": want a decimal number before the unit, got "x"`,
		"1e9 GB/s": `rate "1e9 GB/s": want a decimal number before the unit, got "1e9"`,
	} {
		_, err := ParseRate(in)
		require.EqualError(t, err, want)
	}
}

// Time rounds the exact quotient to the nearest picosecond, Bytes rounds down.
func TestRateIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps, per := rapid.Int64Range(1, 1e12).Draw(t, "ps"), rapid.Int64Range(1, 1<<40).Draw(t, "per")
		bytes := rapid.Int64Range(0, 1<<20).Draw(t, "bytes")
		r := NewRate(Time(ps), per)

		double := new(big.Int).Mul(big.NewInt(ps), big.NewInt(2*bytes))
		double.Add(double, big.NewInt(per))
		want := double.Div(double, big.NewInt(2*per))
		require.Equal(t, want.Int64(), int64(r.Time(bytes)))

		within := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(per))
		require.Equal(t, within.Div(within, big.NewInt(ps)).Int64(), r.Bytes(Time(bytes)))
	})
	require.Equal(t, Time(4096*20), NewRate(20, 1).Time(4096))
	require.Zero(t, Rate{}.Time(1<<40))
	require.Zero(t, Rate{}.Bytes(Second))
}

func TestUnitsInYAML(t *testing.T) {
	type profile struct {
		Wire Time `yaml:"wire"`
		Rate Rate `yaml:"rate,omitempty"`
	}
	var p profile
	require.NoError(t, yaml.Unmarshal([]byte("wire: 33.4ns\nrate: 400Gb/s\n"), &p))
	require.Equal(t, profile{33400, NewRate(20, 1)}, p)
	text, err := yaml.Marshal(profile{Wire: 33400})
	require.NoError(t, err)
	require.Equal(t, "wire: 33.4 ns\n", string(text))
	require.ErrorContains(t, yaml.Unmarshal([]byte("wire: 33.4"), &p), `time "33.4": want a number and a unit`)
}
