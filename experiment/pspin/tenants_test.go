package pspin

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/nic"
)

// measured measures an experiment at all combinations of values.
func measured(t *testing.T, e *experiment.Experiment, device string, values map[string]string) []*experiment.Result {
	t.Helper()
	s, err := experiment.New(e)
	require.NoError(t, err)
	s.Profiles = strings.Split(device, ",")
	for name, value := range values {
		require.NoError(t, s.Choose(name, value))
	}
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(t.Context(), points, func() {})
	require.NoError(t, err)
	return results
}

// Three tenants with very different handlers have processors by their weights,
// within 2%, on devices with clusters, without, and with threads. In the order of
// arrival they do not.
func TestTenantsHaveTheirParts(t *testing.T) {
	for _, device := range []string{"pspin", "spin-int", "dpa"} {
		for _, weights := range []string{equal, ascending} {
			results := measured(t, tenants, device, map[string]string{"weights": weights, "spread": "8", "rounds": "80", "time": "4ms"})
			require.Len(t, results, len(nic.Arbiters()))
			for _, r := range results {
				switch arbiter := r.Point.Text("arbiter"); arbiter {
				case nic.WFQ, nic.WLBVT:
					require.Less(t, r.Float("worst"), 0.02, "%v", r.Point)
					require.Greater(t, r.Float("jain"), 0.999, "%v", r.Point)
					require.Greater(t, r.Float("busy"), 0.95, "%v", r.Point)
				default:
					require.Less(t, r.Float("jain"), 0.8, "%v", r.Point)
				}
			}
			require.Empty(t, wantedLess(results))
		}
	}
}

// A module takes the place of the arbiter: the one of OSMOSIS' does what spinsim's
// own does. It needs an order that looks at tenants, must not wait, and what it
// does wrong is an error of the run.
func TestModulesArbitrate(t *testing.T) {
	run := func(args ...string) string {
		var out, errs bytes.Buffer
		experiment.RunMain([]*experiment.Experiment{tenants}, provenance.Build{}, append([]string{"--spread", "8", "--rounds", "40"}, args...), &out, &errs)
		return out.String() + errs.String()
	}
	table := func(out string) string {
		_, rows, found := strings.Cut(out, "tenant  weight")
		require.True(t, found, out)
		rows, _, _ = strings.Cut(rows, "Everywhere")
		return rows
	}
	own, module := run("--arbiter", "wlbvt"), run("--arbiter", "wlbvt", "--handler", "../../laws/wlbvt.wasm")
	require.Contains(t, module, "handler wlbvt.wasm")
	require.Equal(t, table(own), table(module))
	require.Equal(t, table(own), table(run("--arbiter", "wfq", "--handler", "../../laws/wlbvt.wasm")), "whatever it is in place of")
	require.Contains(t, run("--handler", "../../laws/nscc.wasm"), "expected an export key")
	require.NotContains(t, run("--handler", "../../laws/wlbvt.wasm"), "fifo ")
	require.Contains(t, run("--arbiter", "wfq", "--handler", "../../laws/wlbvt.wasm", "--set", "hpu.max_cycles=5"), "key handler of wlbvt.wasm")
}

// Beside an aggressor that may have half of the processors, the victim's 99th
// percentile is within 20% of alone with the other half, however long the
// aggressor's handlers take. Without a limit it waits for one of them to end.
func TestVictimKeepsItsHalf(t *testing.T) {
	for _, device := range []string{"pspin", "spin-int", "dpa"} {
		for _, r := range measured(t, aggressor, device, map[string]string{"spread": "4,64,512", "arbiter": "wfq,wlbvt"}) {
			if r.Point.Text("limit") == "half" {
				require.Less(t, math.Abs(r.Float("slowdown")-1), 0.2, "%v", r.Point)
			} else if r.Point.Int("spread") > 4 {
				require.Greater(t, r.Float("slowdown"), 1.2, "%v", r.Point)
			}
		}
	}
}

// A packet without bytes needs no buffer, of which tenants have parts: it is refused.
func TestTenantsSendBytes(t *testing.T) {
	for _, e := range []*experiment.Experiment{tenants, aggressor} {
		s, err := experiment.New(e)
		require.NoError(t, err)
		require.EqualError(t, s.Choose("size", "0"), "0 B, expected 1 B to 1 GiB", e.Name)
	}
}

// A single point is the worst and the best: the answer says it once. Of several
// devices it says which.
func TestAggressorAnswer(t *testing.T) {
	results := measured(t, aggressor, "pspin", map[string]string{"arbiter": "fifo,wfq", "limit": "none", "spread": "2", "packets": "10"})
	require.Regexp(t, `^The victim's [^:]*: \d+\.\d\d with fifo, \d\.\d\d with wfq\.$`, aggressorAnswer(results)[0])
	require.Regexp(t, `^The victim's [^:]*: \d\.\d\d with wfq\.$`, aggressorAnswer(results[1:])[0])
	results = measured(t, aggressor, "pspin,spin-int", map[string]string{"arbiter": "wfq", "limit": "none", "spread": "2", "packets": "10"})
	require.Regexp(t, `^The victim's [^:]*: \d\.\d\d with wfq on pspin, \d\.\d\d with wfq on spin-int\.$`, aggressorAnswer(results)[0])
}
