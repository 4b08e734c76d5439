package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
)

// The list for programs has every experiment, with its slots, and a
// description of each column of a document.
func TestListing(t *testing.T) {
	type described struct {
		Name          string
		Axes, Columns []struct{ Name, Kind, Unit, Help string }
		Slots         []struct{ Name, Contract string }
		Tables        []string
	}
	var list struct {
		Experiments []described
		Run         described
	}
	require.NoError(t, json.Unmarshal(output(t, "compare", "--format", "json"), &list))
	require.Contains(t, list.Run.Tables, "latency")
	all := map[string]described{}
	for _, e := range list.Experiments {
		all[e.Name] = e
	}
	require.Len(t, all, len(experiment.All()))
	slots := ""
	for i, slot := range all["bcast"].Slots {
		if i > 0 {
			slots += "\n"
		}
		slots += slot.Contract
	}
	require.Equal(t, string(output(t, "compare", "bcast", "--slots")), slots)
	require.Equal(t, "ranks", all["bcast"].Axes[1].Name)

	help := map[string]string{}
	for _, c := range all["hpus"].Columns {
		require.NotEmpty(t, c.Kind, c.Name)
		help[c.Name] = c.Help
	}
	var document struct{ Rows []map[string]any }
	require.NoError(t, json.Unmarshal(output(t, "compare", "hpus", "--hpus", "8", "--size", "64", "--breakdown", "--format", "json"), &document))
	require.NotEmpty(t, document.Rows)
	for key := range document.Rows[0] {
		require.NotEmpty(t, help[key], key)
	}
}
