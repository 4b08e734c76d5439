package report

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// Every value that a table writes as JSON is read back unchanged.
func TestDecodeIsTheInverseOfJSON(t *testing.T) {
	columns := []Column{
		{Name: "a"},
		{Name: "b", Kind: Count},
		{Name: "c", Kind: Size, Unit: "B"},
		{Name: "d", Kind: Duration, Unit: "us"},
		{Name: "e", Kind: Number, Unit: "GiBps"},
		{Name: "f", Kind: Flag},
		{Name: "g", Kind: Duration, Unit: "ps"},
		{Name: "h", Kind: Share},
		{Name: "i", Kind: Duration, Unit: "s"},
		{Name: "j", Kind: Count},
	}
	rapid.Check(t, func(r *rapid.T) {
		time := func(name string) sim.Time {
			return sim.Time(rapid.Int64Range(-math.MaxInt64, math.MaxInt64).Draw(r, name))
		}
		row := []any{
			rapid.String().Draw(r, "a"), rapid.Int64().Draw(r, "b"), rapid.Int64().Draw(r, "c"), time("d"), rapid.Float64().Draw(r, "e"),
			rapid.Bool().Draw(r, "f"), time("g"), rapid.Float64().Draw(r, "h"), time("i"), rapid.Uint64Range(math.MaxInt64+1, math.MaxUint64).Draw(r, "j"),
		}
		if rapid.Bool().Draw(r, "none") {
			row[rapid.IntRange(0, len(row)-1).Draw(r, "which")] = nil
		}
		table := New(columns...)
		table.Add(row...)
		text, err := table.document()
		require.NoError(t, err)
		var back []map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &back))
		for i, c := range columns {
			v, err := c.Decode(back[0][c.Key()])
			require.NoError(t, err)
			require.Equal(t, table.rows[0][i], v, c.Key())
			require.True(t, c.Same(v, row[i]))
		}
	})
	for text, c := range map[string]Column{
		`"x"`: {Name: "n", Kind: Count}, `1.5`: {Name: "n", Kind: Size}, `1e3`: {Name: "n", Kind: Duration, Unit: "ns"}, `1.0001`: {Name: "n", Kind: Duration, Unit: "ns"}, `x`: {Name: "n", Kind: Share},
		`1`: {Name: "n", Kind: Flag}, `{}`: {Name: "n"}, `99999999999999999999999`: {Name: "n", Kind: Duration, Unit: "s"},
	} {
		_, err := c.Decode(json.RawMessage(text))
		require.ErrorContains(t, err, "expected a value of kind", text)
	}
	_, err := Column{Name: "n"}.Decode(nil)
	require.ErrorContains(t, err, "n: no value")
}
