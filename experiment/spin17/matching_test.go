package spin17

import (
	"bytes"
	"context"
	"encoding/csv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/internal/goal/proxy"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Every published application has its proxy, and the share of communication in
// a run equals the published one.
func TestMatchingHasThePublishedShare(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	for _, a := range PublishedApplications() {
		require.Contains(t, proxy.Names(), a.Proxy)
		if a.Ranks > 72 || a.Proxy == "comd" {
			continue // the same with more ranks or bytes
		}
		p, err := matching.At(device, experiment.Values{"app": a.Proxy, "ranks": a.Ranks, "iterations": 2})
		require.NoError(t, err)
		r, err := matching.Measure(context.Background(), p)
		require.NoError(t, err)
		require.InDelta(t, a.Share, r.Float("p2p_share"), shareTolerance)
		require.Positive(t, r.Float("gain"), a.Proxy)
		require.Less(t, r.Float("gain"), a.Share/(1-a.Share), "no more can be gained than communication takes")
		require.InEpsilon(t, r.Time("host").Nanoseconds()/r.Time("offload").Nanoseconds()-1, r.Float("gain"), 1e-9)
	}
}

// There are only published points. What cannot run is refused before anything
// runs.
func TestMatchingHasPublishedPointsOnly(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	_, err = matching.At(device, experiment.Values{"app": "milc", "ranks": 72})
	require.EqualError(t, err, "matching is not measured at 72 ranks, milc, 5 iterations, 16 KiB")
	_, err = matching.At(device, experiment.Values{"app": "milc", "iterations": 1_000_000_000})
	require.ErrorIs(t, err, goal.ErrTooLarge)
	_, err = matching.At(device, experiment.Values{"eager": 1 << 40})
	require.ErrorContains(t, err, "eager")

	s, err := experiment.New(matching)
	require.NoError(t, err)
	points, err := s.Points()
	require.NoError(t, err)
	require.Len(t, points, len(PublishedApplications()))
	for i, a := range PublishedApplications() {
		require.Equal(t, []any{a.Proxy, a.Ranks}, []any{points[i].Text("app"), points[i].Int("ranks")}, "as published")
	}
}

// A published gain stands beside ours, but not for another device: there its
// columns are empty.
func TestMatchingTableBesidePublished(t *testing.T) {
	for _, overrides := range [][]string{nil, {"hpu.cores=5"}} {
		s, err := experiment.New(matching)
		require.NoError(t, err)
		s.Overrides = overrides
		require.NoError(t, s.Choose("app", "milc"))
		points, err := s.Points()
		require.NoError(t, err)
		require.Len(t, points, 1)
		milc := &pair{
			Application: PublishedApplications()[0],
			Host:        &nodes.Result{Max: 125 * sim.Microsecond}, Offload: &nodes.Result{Max: 100 * sim.Microsecond},
		}
		table, err := s.Table([]*experiment.Result{{Point: points[0], Values: milc.values(0)}})
		require.NoError(t, err)
		row := rowsOfTable(t, table)[0]
		require.Equal(t, []string{"0.25", "5743212"}, []string{row["gain"], row["trace_messages"]})
		if overrides != nil {
			require.Equal(t, []string{"", "", ""}, []string{row["gain_published"], row["gain_difference"], row["published_source"]})
			continue
		}
		require.Equal(t, []string{"0.036", "0.214", "sPIN'17 §5.1"}, []string{row["gain_published"], row["gain_difference"], row["published_source"]})
	}
}

// rowsOfTable are the rows of a table's CSV, by the keys of the columns.
func rowsOfTable(t require.TestingT, table *report.Table) (rows []map[string]string) {
	var out bytes.Buffer
	require.NoError(t, table.Write(&out, report.CSVFormat))
	r := csv.NewReader(&out)
	r.Comment = '#'
	records, err := r.ReadAll()
	require.NoError(t, err)
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, key := range records[0] {
			require.NotContains(t, row, key, "two columns")
			row[key] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// The applications of matching, with both forms: every message arrives with its
// bytes.
func TestApplicationsOnFaultyMemory(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	for _, a := range PublishedApplications() {
		if a.Ranks > 72 {
			continue
		}
		app, err := proxy.Load(a.Proxy)
		require.NoError(t, err)
		s, err := app.Schedule(a.Ranks, 1, 1000)
		require.NoError(t, err)
		for _, m := range mpi.Forms() {
			cfg := nodes.Config{Config: runtime.Config{Profile: device, Seed: 1}, MPI: matchingOptions(m, 1024)}
			right, err := nodes.Run(context.Background(), s, cfg)
			require.NoError(t, err)
			f := hosttest.Nodes{Chances: hosttest.Kinds["all"]}
			cfg.Translator = f.Make
			r, err := nodes.Run(context.Background(), s, cfg)
			require.NoError(t, err, "%s, %s", a.Proxy, m)
			require.Greater(t, f.Faults, 100)
			require.Equal(t, right.Messages.Received, r.Messages.Received)
			require.Greater(t, r.Max, right.Max)
		}
	}
}
