package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// searches are commands whose columns help knows, beside those of TestHelpKnowsAllColumns.
var searches = [][]string{
	{"compare", "graph", "--scale", "5", "--ranks", "2"},
	{"graph", "run", filepath.Join("..", "..", "examples", "graph", "roads.txt"), "--ranks", "2"},
}

// help columns knows every column that any command writes, under the command's name.
func TestHelpKnowsAllColumns(t *testing.T) {
	help := string(output(t, "help", "columns"))
	known := func(key, where string) {
		require.Contains(t, help, "\n"+key+" ", "%s writes %s", where, key)
	}
	schedule := filepath.Join(t.TempDir(), "a.goal")
	output(t, "goal", "gen", "bcast-binomial", "--ranks", "3", "-o", schedule)
	scenario := filepath.Join("..", "..", "examples", "scenarios", "count.yaml")
	commands := [][]string{
		{"compare", "bcast", "--ranks", "2", "--size", "8"},
		{"compare", "hpus", "--hpus", "1", "--size", "512", "--handler-time", "50ns"},
		{"compare", "pagefault", "--policy", "pio", "--size", "4KiB"},
		{"compare", "isend", "--sample", "1"},
		{"compare", "apps", "--ranks", "1", "--rounds", "1"},
		{"compare", "ip", "--over", "polling", "--mtu", "1500", "--size", "10KB", "--path", "1-hop", "--streams", "1"},
		{"compare", "gsas", "--op", "fetch-add", "--path", "b"},
		{"compare", "datatype", "--size", "64KiB", "--block", "1KiB"},
		{"compare", "datatype-apps", "--app", "NAS_LU_y"},
		{"compare", "kv", "--clients", "2", "--ops", "5", "--records", "50"},
		{"compare", "scan", "--size", "16KiB", "--selectivity", "1%"},
		{"compare", "raid5", "--size", "64KiB"},
		{"compare", "replicate", "--copies", "2", "--size", "64"},
		{"storage", "run", filepath.Join("..", "..", "examples", "storage", "oltp.spc"), "--requests", "5"},
		{"compare", "allreduce", "--ranks", "4,6", "--size", "4"},
		{"compare", "ftbcast", "--ranks", "8", "--size", "8"},
		{"compare", "txlog", "--ranks", "2", "--size", "8", "--count", "2"},
		{"goal", "proxies", "--app", "milc", "--iterations", "1"},
		{"compare", "accumulate", "--size", "16", "--waterfall", "spin-int-sc17,spin-int"},
		{"compare", "hpus", "--hpus", "1", "--size", "512", "--handler-time", "50ns", "--waterfall", "spin-dis,spin-int"},
	}
	for _, table := range []string{"latency", "stats", "state", "events", "log"} {
		commands = append(commands, []string{"run", scenario, "--table", table})
	}
	for _, c := range append(commands, searches...) {
		header, err := csv.NewReader(strings.NewReader(string(output(t, append(c, "--format", "csv")...)))).Read()
		require.NoError(t, err)
		for _, key := range header {
			base, is := published(key)
			if is {
				require.True(t, slices.ContainsFunc([]string{base, base + "_us", base + "_GiBps"}, func(of string) bool { return slices.Contains(header, of) }), base)
				continue
			}
			known(key, strings.Join(c, " "))
		}
	}
	for _, on := range []string{"model", "nodes"} {
		var document map[string]any
		require.NoError(t, json.Unmarshal(output(t, "goal", "run", schedule, "--on", on, "--format", "json"), &document))
		fields := document
		if on == "nodes" {
			fields = document["results"].([]any)[0].(map[string]any)
		}
		for key := range fields {
			if key != "provenance" {
				known(key, "goal run --on "+on)
			}
		}
	}
	require.NoError(t, os.Remove(schedule))
}

// published tells whether a column stands beside another one with published numbers, and which.
func published(key string) (of string, is bool) {
	for _, suffix := range []string{"_published_ns", "_published_us", "_published_GiBps", "_published", "_deviation", "_difference"} {
		if base, is := strings.CutSuffix(key, suffix); is && base != "littles_law" {
			switch base {
			case "handler_limit":
				base += "_ns"
			}
			return base, true
		}
	}
	return "", false
}
