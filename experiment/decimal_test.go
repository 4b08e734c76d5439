package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/report"
)

func TestFractions(t *testing.T) {
	t.Parallel()
	a := Axis{Name: "G", Unit: "ns", Kind: report.Count, Fractions: true, Most: "576460752303423488"}
	for text, want := range map[string][]any{
		"6":                      {6},
		"576460752303423488":     {576460752303423488},
		"1,2,4..8":               nil,
		"0.04":                   {0.04},
		"0.0186264515,6, 7.0":    {0.0186264515, 6, 7},
		"0.1,0.2,0.3,..,0.6":     {0.1, 0.2, 0.3, 0.4, 0.5, 0.6},
		"0.5..4*2":               {0.5, 1, 2, 4},
		"0.123456789012345":      {0.123456789012345},
		"0.1234567890123456":     nil,
		"0.10000000000000000005": nil,
		"-0.5":                   nil,
		"0x1p-2":                 nil,
		"NaN":                    nil,
		"0.5,0.50":               nil, // twice
		"576460752303423489.5":   nil,
	} {
		got, err := a.Parse(text)
		if want == nil {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		for _, v := range got {
			require.True(t, a.column().Holds(v))
			again, err := a.parse(a.write(v))
			require.NoError(t, err)
			require.Equal(t, v, again)
		}
	}
	require.Equal(t, "G 0.04 ns", a.show(0.04))
	require.Equal(t, "G 6 ns", a.show(6))
	a.Fractions = false
	_, err := a.Parse("0.04")
	require.ErrorContains(t, err, "not a whole number")
}
