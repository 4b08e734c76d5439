package exanest

import (
	"testing"

	"github.com/stretchr/testify/require"

	network "github.com/spinsim/spinsim/exanet/ip"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Answers of experiments to what TR-488 leaves open.

// The axes of ip for values of ip.yaml have its values by default, and each
// reaches its field, and no other.
func TestIPAxesReachTheirFields(t *testing.T) {
	d, err := profile.Load("exanest")
	require.NoError(t, err)
	today, err := network.Load()
	require.NoError(t, err)
	load := func(values experiment.Values) *network.Spec {
		values["over"], values["traffic"], values["streams"], values["mtu"] = "polling", ipUDP, 1, 9000
		p, err := ipExperiment.At(d, values)
		require.NoError(t, err)
		s, err := network.Load(ipSpecSet(p)...)
		require.NoError(t, err)
		return s
	}
	require.Equal(t, today, load(experiment.Values{}))
	fields := map[string]bool{}
	for _, f := range ipSpecs {
		fields[f.field] = true
		was, value := f.of(today), any(int(2*f.of(today)))
		if f.kind == report.Duration {
			value = sim.Time(2 * was)
		}
		changed := load(experiment.Values{f.axis: value})
		require.Equal(t, 2*was, f.of(changed), f.axis)
		restored, err := network.Load(f.field + "=" + f.text(f.of(changed)))
		require.NoError(t, err)
		require.Equal(t, restored, changed, f.axis)
	}
	require.Len(t, fields, len(ipSpecs))
	// the Ethernet has its own MTU if it is told so
	over := func(mtu string) float64 {
		return talks(t, experiment.Values{"over": ipEthernet, "traffic": ipUDP, "mtu": 9000, "streams": 1, "size": 1 << 18, "ethernet-mtu": mtu}).Float("throughput")
	}
	require.Equal(t, over(asMTU), over("9000"))
	require.Less(t, over("1500"), over(asMTU))
}

// More atoms in all take as much longer, and lose less with more ranks.
func TestScalingCopies(t *testing.T) {
	at := func(copies, ranks int) *experiment.Result {
		return measured(t, scaling, "exanest", experiment.Values{"app": "lammps", "scaling": "strong", "ranks": ranks, "copies": copies})
	}
	require.InEpsilon(t, 8*at(1, 1).Time("time").Seconds(), at(8, 1).Time("time").Seconds(), 1e-3)
	require.Greater(t, at(8, 27).Float("efficiency"), at(1, 27).Float("efficiency"))
	hpcg := func(copies int) *experiment.Result {
		return measured(t, scaling, "exanest", experiment.Values{"app": "hpcg", "scaling": "strong", "ranks": 2, "copies": copies})
	}
	require.Equal(t, hpcg(1).Time("time"), hpcg(8).Time("time"), "other applications have their own size")
}

// The latency of a collective is the mean of ranks, or one of the columns beside
// it, and the model has the time of a way that --one-way selects.
func TestRanksAxes(t *testing.T) {
	at := func(set experiment.Values) *experiment.Result {
		set["ranks"], set["size"] = 4, 4
		return measured(t, OSURanks, "exanest", set)
	}
	mean := at(experiment.Values{})
	for _, of := range []string{"least", "most"} {
		r := at(experiment.Values{"statistic": of})
		require.Equal(t, mean.Time(of), r.Time(experiment.LatencyColumn))
		require.Equal(t, mean.Time("model"), r.Time("model"))
	}
	arrival := at(experiment.Values{"one-way": "arrival"})
	require.Equal(t, mean.Time(experiment.LatencyColumn), arrival.Time(experiment.LatencyColumn))
	require.Less(t, mean.Time("model"), arrival.Time("model"))
}
