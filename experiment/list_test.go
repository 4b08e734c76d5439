package experiment

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLists(t *testing.T) {
	parse := func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
	for text, want := range map[string][]int64{
		"8":          {8},
		"8,3, 5":     {8, 3, 5},
		"2,4,..,16":  {2, 4, 8, 16},
		"2,..,16":    {2, 4, 8, 16},
		"4,16,..,64": {4, 16, 64},
		"2,4,..,20":  {2, 4, 8, 16, 20}, // the last value belongs to it
		"1,2,3,..,7": {1, 2, 3, 4, 5, 6, 7},
		"1,..,4,9":   {1, 2, 4, 9},
	} {
		got, err := ParseList(text, parse)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, message := range map[string]string{
		"":                   "invalid syntax",
		"..,4":               "values before and after",
		"2,..":               `a last value after ".."`,
		"2,..,..,8":          "values before and after",
		"8,..,2":             "expected rising values",
		"0,..,8":             "expected rising values",
		"4,6,..,100":         "expected a whole ratio or three values with equal steps",
		"1,2,3,..,999999999": "more than 10000 values",
		"3,2,1,..,0":         "expected rising values",
		"4,x":                "invalid syntax",
	} {
		_, err := ParseList(text, parse)
		require.ErrorContains(t, err, message, text)
	}
}
