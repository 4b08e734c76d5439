package exanest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// talks measures a point of ip.
func talks(t *testing.T, values experiment.Values) *experiment.Result {
	t.Helper()
	d, err := profile.Load("exanest", "os.kind=none", "smmu.kind=none")
	require.NoError(t, err)
	p, err := ipExperiment.At(d, values)
	require.NoError(t, err)
	r, err := ipExperiment.Measure(context.Background(), p)
	require.NoError(t, err, p)
	return r
}

// Larger packets carry more, because software takes time for each packet. No
// link carries more than its rate. UDP loses the rest, TCP loses nothing.
func TestIPThroughput(t *testing.T) {
	const size = 1 << 20
	at := func(over, traffic string, mtu, streams int) *experiment.Result {
		return talks(t, experiment.Values{"over": over, "traffic": traffic, "mtu": mtu, "streams": streams, "size": size})
	}
	rate := func(r *experiment.Result) float64 { return r.Values["throughput"].(float64) }
	for _, traffic := range []string{ipTCP, ipUDP} {
		small, large := at("polling", traffic, 1500, 1), at("polling", traffic, 9000, 1)
		require.Greater(t, rate(large), 1.5*rate(small), traffic)
		require.Less(t, rate(large), 10*256.0/(256+32+110), "the link between boards")
		require.Less(t, rate(at(ipEthernet, traffic, 1500, 1)), 10*1460.0/1538)
		require.Greater(t, large.Values["per_transfer"].(float64), 1.0)
	}
	tcp := at("polling", ipTCP, 1500, 4)
	require.Zero(t, tcp.Values["lost"])
	require.Zero(t, at("polling", ipUDP, 9000, 1).Values["resent"])
	require.Greater(t, at("sleeping", ipTCP, 9000, 1).Values["asleep"].(float64), 0.0)
}

// A sleeping service answers later, the longer it was idle, and uses less of
// its core. Polling uses all of it.
func TestIPRoundTrip(t *testing.T) {
	at := func(over string, pause sim.Time) *experiment.Result {
		return talks(t, experiment.Values{"over": over, "traffic": ipRTT, "mtu": 1500, "rounds": 20, "pause": pause})
	}
	trip := func(r *experiment.Result) sim.Time { return r.Time("round_trip") }
	busy, soon, late := at("polling", 100*sim.Microsecond), at("sleeping", 100*sim.Microsecond), at("sleeping", 3*sim.Millisecond)
	require.Less(t, trip(busy), trip(soon))
	require.Less(t, trip(soon), trip(late))
	require.Zero(t, busy.Values["asleep"])
	require.Greater(t, late.Values["asleep"].(float64), 0.8)
	firmware := 2 * 3 * sim.Microsecond // a transfer in each direction
	require.Greater(t, trip(busy), firmware)
	require.Less(t, trip(busy), 20*firmware)
}

// Where memory is sometimes absent or late, all data that arrives is right. (A
// peer may die because of it, and its datagrams are lost.)
func TestIPOnFaultyMemory(t *testing.T) {
	faults, late := 0, 0
	for _, chances := range hosttest.Kinds { //lint:maporder each by itself
		d, err := profile.Load("exanest-qfdb", "os.kind=none", "smmu.kind=none")
		require.NoError(t, err)
		p, err := ipExperiment.At(d, experiment.Values{"over": "polling", "traffic": ipUDP, "mtu": 1500, "path": "intra-qfdb", "streams": 1, "size": 30000})
		require.NoError(t, err)
		f := hosttest.Nodes{Chances: chances}
		p.Translator = f.Make
		_, err = ipExperiment.Measure(context.Background(), p)
		require.NoError(t, err, "%s, %+v", p, chances)
		faults, late = faults+f.Faults, late+f.Delayed
	}
	require.Positive(t, faults)
	require.Positive(t, late)
}
