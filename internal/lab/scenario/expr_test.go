package scenario

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/manifest"
)

func TestExprErrors(t *testing.T) {
	_, err := ParseExpr("1 +")
	require.EqualError(t, err, `"1 +": a number is missing; expected a whole number such as 8, 0x10 or 4KiB, or + - * / % << min max and parentheses with `+
		"rank, ranks, last, mtu, hpus, contexts, clusters, i, round")
	at := &env{}
	for text, want := range map[string]string{
		"rank":      "rank has no value here",
		"8 / (2-2)": "division by zero",
		"1 - 2":     "1 - 2: -1, expected 0 to 18446744073709551615",
	} {
		e, err := ParseExpr(text)
		require.NoError(t, err)
		_, err = e.u64(at)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestRanks(t *testing.T) {
	at := &env{}
	at.set(varRanks, 4)
	at.set(varLast, 3)
	for _, c := range []struct {
		texts []string
		want  []int
		err   string
	}{
		{[]string{"all"}, []int{0, 1, 2, 3}, ""},
		{[]string{"2..last", "0"}, []int{2, 3, 0}, ""},
		{[]string{"last/2 .. last-1"}, []int{1, 2}, ""},
		{[]string{"ranks..last"}, nil, ""},
		{[]string{"2..1"}, nil, ""},
		{[]string{"4"}, nil, "rank 4, expected 0 to 3"},
		{[]string{"0..4"}, nil, "rank 4, expected 0 to 3"},
		{[]string{"0..2", "1"}, nil, "rank 1 is listed twice"},
	} {
		var s RankSet
		for _, text := range c.texts {
			r, err := parseRanks(text)
			require.NoError(t, err)
			s.terms = append(s.terms, r)
		}
		got, err := s.list(at)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, "%v", c.texts)
			continue
		}
		require.NoError(t, err, "%v", c.texts)
		require.Equal(t, c.want, got, "%v", c.texts)
	}
}

// A number read from the bytes of its type is the number that was written. A
// number that does not fit is refused.
func TestFieldsKeepTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(manifest.Types()[:8]).Draw(t, "type")
		v := big.NewInt(rapid.Int64().Draw(t, "value"))
		if rapid.Bool().Draw(t, "large") {
			v.SetUint64(rapid.Uint64().Draw(t, "unsigned"))
		}
		e, err := ParseExpr(v.String())
		require.NoError(t, err)
		b, err := (&Float{expr: e}).encode(typ, &env{})
		least, most := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(8*typ.Size()))
		if typ.Signed() {
			least.Neg(most.Rsh(most, 1))
		}
		if v.Cmp(least) < 0 || v.Cmp(most) >= 0 {
			require.ErrorContains(t, err, "expected")
			return
		}
		require.NoError(t, err)
		require.Len(t, b, int(typ.Size()))
		require.Equal(t, v.String(), numberOf("", typ, 0).Text(b))
		back, whole := wholeOf(numberOf("", typ, 0).Get(b))
		require.True(t, whole)
		require.Zero(t, v.Cmp(back))
	})
}
