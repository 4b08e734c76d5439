package experiment

import (
	"bytes"
	"context"
	"encoding/csv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal/nodes"
	"github.com/spinsim/spinsim/goal/proxy"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Every published application has its proxy, and the share of communication that a run has is the published one.
func TestMatchingHasThePublishedShare(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	for _, a := range PublishedApplications() {
		require.Contains(t, proxy.Names(), a.Proxy)
		if a.Ranks > 72 || a.Proxy == "comd" {
			continue // the same with more ranks or bytes
		}
		r, err := RunMatching(context.Background(), a, MatchingConfig{Profile: p, Iterations: 2, Eager: 16 << 10, Seed: 1})
		require.NoError(t, err)
		require.InDelta(t, a.Share, r.Host.Share(), shareTolerance)
		require.Equal(t, r.Host.Messages.Received, r.Offload.Messages.Received)
		require.Positive(t, r.Gain(), a.Proxy)
		require.Less(t, r.Gain(), a.Share/(1-a.Share), "no more can be gained than communication takes")
	}
}

// A published gain stands beside ours, but not beside that of another device: there its columns are empty.
func TestMatchingTableBesidePublished(t *testing.T) {
	results := []*MatchingResult{{
		Application: PublishedApplications()[0],
		Host:        &nodes.Result{Max: 125 * sim.Microsecond}, Offload: &nodes.Result{Max: 100 * sim.Microsecond},
	}}
	for _, overrides := range [][]string{nil, {"hpu.cores=5"}} {
		p, err := profile.Load("spin-int", overrides...)
		require.NoError(t, err)
		table, err := MatchingTable(results, &provenance.Record{}, p)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, table.Write(&out, report.CSVFormat))
		records, err := csv.NewReader(&out).ReadAll()
		require.NoError(t, err)
		row := map[string]string{}
		for i, key := range records[0] {
			row[key] = records[1][i]
		}
		require.Equal(t, []string{"0.25", "5743212"}, []string{row["gain"], row["trace_messages"]})
		if overrides != nil {
			require.Equal(t, []string{"", "", ""}, []string{row["gain_published"], row["gain_difference"], row["published_source"]})
			continue
		}
		require.Equal(t, []string{"0.036", "0.214", "sPIN'17 §5.1"}, []string{row["gain_published"], row["gain_difference"], row["published_source"]})
	}
}
