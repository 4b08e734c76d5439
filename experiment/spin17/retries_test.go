package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
)

// If more than half of the attempts are retries, the caveats name the point.
func TestRetriesAreSaid(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	for _, c := range []struct {
		e          *experiment.Experiment
		few, often experiment.Values
		said       string
	}{
		{
			keyValue,
			experiment.Values{"mode": experiment.ModeSpin, "clients": 2, "ops": 5, "records": 100},
			experiment.Values{"mode": experiment.ModeSpin, "workload": "A", "clients": 300, "ops": 5},
			`^Retries dominate in 1 of 2 results: most of all spin-int, .*300 clients, .* of the requests had to come again\.$`,
		},
		{
			transactions,
			experiment.Values{"mode": experiment.ModeSpin, "op": opTransaction, "ranks": 2, "size": 8, "count": 5},
			experiment.Values{"mode": experiment.ModeSpin, "op": opTransaction, "ranks": 17, "size": 8, "count": 20, "items": 5},
			`^Retries dominate in 1 of 2 results: most of all spin-int, .*17 ranks, .* of the transactions had to come again\.$`,
		},
	} {
		var results []*experiment.Result
		for _, v := range []experiment.Values{c.few, c.often} {
			p, err := c.e.At(device, v)
			require.NoError(t, err)
			r, err := c.e.Measure(context.Background(), p)
			require.NoError(t, err)
			results = append(results, r)
		}
		lines := c.e.Caveats(results)
		require.Regexp(t, c.said, lines[len(lines)-1])
		lines = c.e.Caveats(results[:1])
		require.NotContains(t, lines[len(lines)-1], "Retries")
	}
}
