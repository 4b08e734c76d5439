package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "8": 8, "8B": 8, "4KiB": 4096, " 64 KiB ": 65536, "1.5MiB": 3 << 19, "64kB": 64000, "1MB": 1e6, "2GiB": 2 << 30, "4Ki": 4096,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "B", "x", "-1", "0.5", "1e300", "4KiBs", "NaN", "inf", "9007199254740992"} {
		_, err := ParseSize(text)
		require.Error(t, err, text)
	}
	require.Equal(t, []string{"8 B", "4 KiB", "1 MiB", "3 GiB", "1000 B", "0 B"},
		[]string{Size(8).String(), Size(4096).String(), Size(1 << 20).String(), Size(3 << 30).String(), Size(1000).String(), Size(0).String()})
}

func TestFrequencies(t *testing.T) {
	var f Frequency
	require.NoError(t, f.UnmarshalText([]byte("2.5GHz")))
	require.Equal(t, 400*Picosecond, f.Cycles(1))
	require.Equal(t, Microsecond, f.Cycles(2500))
	require.NoError(t, f.UnmarshalText([]byte("150 MHz")))
	require.Equal(t, Time(6667), f.Cycles(1), "20/3 ns to the nearest picosecond")
	require.Equal(t, 20*Nanosecond, f.Cycles(3), "rounded once, not three times")
	for _, text := range []string{"", "3", "0GHz", "-1GHz", "fast", "NaNGHz", "1e30GHz"} {
		require.Error(t, f.UnmarshalText([]byte(text)), text)
	}
}
