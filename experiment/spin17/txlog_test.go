package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
)

func measureTransactions(t *testing.T, device string, v experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := transactions.At(p, v)
	require.NoError(t, err)
	r, err := transactions.Measure(context.Background(), at)
	require.NoError(t, err)
	return r
}

// sPIN'17: accesses are logged at line rate. A record costs 48 B on the bus,
// which does not matter for a packet of 4 KiB. With one slow HPU its time is
// the limit.
func TestLoggingAtLineRate(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		for _, op := range []string{opRead, opWrite} {
			v := experiment.Values{"op": op, "ranks": 9, "size": 4096, "count": 50}
			rate := func(mode string, set ...string) float64 {
				v["mode"] = mode
				return measureTransactions(t, device, v, set...).Float("rate")
			}
			require.InEpsilon(t, rate(experiment.ModeRDMA), rate(experiment.ModeSpin), 0.02, "%s %s", device, op)
			require.Less(t, rate(experiment.ModeSpin, "hpu.cores=1", "hpu.clock=50MHz"), 0.9*rate(experiment.ModeRDMA), "%s %s", device, op)
		}
	}
}

// If all change one item, two transactions that overlap never both commit. A
// single client never retries.
func TestTransactionsMeet(t *testing.T) {
	for _, mode := range []string{experiment.ModeHost, experiment.ModeSpin} {
		v := experiment.Values{"mode": mode, "op": opTransaction, "ranks": 6, "size": 64, "count": 10, "items": 1, "reads": 1, "writes": 1}
		require.Positive(t, measureTransactions(t, "spin-int", v).Values["aborted"])
		v["ranks"] = 2
		require.Zero(t, measureTransactions(t, "spin-int", v).Values["aborted"])
		v["ranks"], v["writes"] = 6, 0
		require.Zero(t, measureTransactions(t, "spin-int", v).Values["aborted"], "who only reads disturbs nobody")
	}
}

// The host sees each access of transactions once, except accesses that nobody
// asks it about.
func TestRecordsOfTransactions(t *testing.T) {
	v := experiment.Values{"mode": experiment.ModeSpin, "op": opTransaction, "ranks": 2, "size": 64, "count": 10, "items": 10, "reads": 4, "writes": 2}
	logged := measureTransactions(t, "spin-int", v).Values["logged"].(int)
	require.Equal(t, 10*4+9*2, logged, "writes of the last are never looked at")
}

// On ExaNeSt, records land in any order and pages are absent. No update is
// lost, and items that no transaction has touched can be read.
func TestTransactionsOnExaNeSt(t *testing.T) {
	v := experiment.Values{"mode": experiment.ModeSpin, "op": opTransaction, "ranks": 9, "size": 512, "count": 40, "items": 8}
	require.Positive(t, measureTransactions(t, "exanest", v).Float("rate"))
	v["count"], v["items"], v["size"] = 1, 100, 4096
	require.Positive(t, measureTransactions(t, "exanest", v).Float("rate"))
}
