package experiment

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

func TestLists(t *testing.T) {
	parse := strconv.Atoi
	for text, want := range map[string][]int{
		"8":          {8},
		"8,3, 5":     {8, 3, 5},
		"2,4,..,16":  {2, 4, 8, 16},
		"2,..,16":    {2, 4, 8, 16},
		"4,16,..,64": {4, 16, 64},
		"2,4,..,20":  {2, 4, 8, 16, 20}, // the last value is in the list
		"1,2,3,..,7": {1, 2, 3, 4, 5, 6, 7},
		"1,..,4,9":   {1, 2, 4, 9},
		"8..512*4":   {8, 32, 128, 512},
		"8..500*4":   {8, 32, 128, 500},
		"1..8+3":     {1, 4, 7, 8},
		"0..4+2":     {0, 2, 4},
		"5..5*2":     {5},
		"10..12*1.1": {10, 11, 12},
	} {
		got, err := ParseList(text, parse)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, message := range map[string]string{
		"":                   "no value",
		"..,4":               "values before and after",
		"2,..":               `a last value after ".."`,
		"2,..,..,8":          "values before and after",
		"8,..,2":             "expected rising values",
		"0,..,8":             "expected rising values",
		"4,6,..,100":         "expected a whole ratio or three values with equal steps",
		"1,2,3,..,999999999": "more than 10000 values",
		"3,2,1,..,0":         "expected rising values",
		"4,x":                "invalid syntax",
		"8..2*2":             "expected rising values",
		"0..8*2":             "expected rising values",
		"1..8*1":             "expected rising values",
		"1..8+0":             "expected rising values",
		"1..8+-1":            "expected rising values",
		"1..8*x":             "invalid syntax",
		"1..8*1.01":          "expected rising values",
		"1..9999999+1":       "more than 10000 values",
		"x..8*2":             "invalid syntax",
	} {
		_, err := ParseList(text, parse)
		require.ErrorContains(t, err, message, text)
	}
}

// Lists of times and fractions work like lists of whole numbers.
func TestListsOfOtherNumbers(t *testing.T) {
	times, err := ParseList("50ns,100ns,..,400ns", sim.ParseTime)
	require.NoError(t, err)
	require.Equal(t, []sim.Time{50_000, 100_000, 200_000, 400_000}, times)
	number := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	for text, want := range map[string][]float64{
		"1e-4,1e-3,..,0.1":  {1e-4, 1e-3, 1e-2, 0.1},
		"0.1,0.2,0.3,..,1":  {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1},
		"0.5,..,3":          {0.5, 1, 2, 3},
		"0..1+0.25":         {0, 0.25, 0.5, 0.75, 1},
		"1e-3..1e+0":        {1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3, 128e-3, 256e-3, 512e-3, 1},
		"1..2e+1*4":         {1, 4, 16, 20},
		"0.1,0.15,..,0.225": {0.1, 0.15, 0.225},
	} {
		got, err := ParseList(text, number)
		require.NoError(t, err, text)
		require.InDeltaSlice(t, want, got, 1e-9, text)
	}
	_, err = ParseList("0.5,0.5,..,3", number)
	require.ErrorContains(t, err, "expected rising values")
}
