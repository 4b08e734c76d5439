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

	"github.com/spinsim/spinsim/internal/digest"
)

// others are commands whose columns help knows, beside those of TestHelpKnowsAllColumns.
var others = [][]string{
	{"compare", "npf-working-set", "--scale", "256", "--mode", "npf", "--server", "both", "--horizon", "1s", "--at", "1s", "--window", "1s"},
	{"compare", "npf-instances", "--instances", "1", "--working-set", "1MiB", "--vm", "4MiB", "--warm", "1ms", "--time", "1ms"},
	{"compare", "graph", "--scale", "5", "--ranks", "2"},
	{"compare", "npf-cold-ring", "--mode", "pinned", "--connections", "1", "--ring", "4", "--at", "5s"},
	{"compare", "npf-synthetic", "--mode", "backup", "--fault", "minor", "--messages", "2", "--every", "0"},
	{"compare", "npf-ring-size", "--mode", "pinned", "--operations", "10", "--ring", "4"},
	{"graph", "run", filepath.Join("..", "..", "examples", "graph", "roads.txt"), "--ranks", "2"},
}

// connections are commands with reliable connections whose memory is absent.
var connections = [][]string{
	{"compare", "npf-latency", "--noise", "none", "--size", "4KiB"},
	{"compare", "npf-line-rate", "--frames", "64", "--hpus", "8", "--rings", "1", "--rate", "100"},
	{"compare", "npf-synthetic-ib", "--messages", "5"},
	{"compare", "npf-storage", "--disk", "2MiB", "--pool", "2MiB", "--memory", "128MiB", "--requests", "4", "--depth", "1"},
	{"compare", "npf-versus-part", "--size", "4KiB"},
	{"compare", "npf-imb", "--ranks", "2", "--size", "4KiB", "--iterations", "1"},
	{"compare", "npf-beff", "--ranks", "2", "--sent", "4KiB", "--repetitions", "1", "--loop", "0us"},
	{"compare", "npf-pinning", "--size", "4KiB", "--messages", "1"},
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
		{"compare", "isend", "--sample", "1"},
		{"compare", "apps", "--ranks", "1", "--rounds", "1"},
		{"compare", "ip", "--over", "polling", "--mtu", "1500", "--size", "10KB", "--path", "1-hop", "--streams", "1"},
		{"compare", "gsas", "--op", "fetch-add", "--path", "b"},
		{"compare", "datatype", "--size", "64KiB", "--block", "1KiB"},
		{"compare", "datatype-apps", "--app", "NAS_LU_y"},
		{"compare", "kv", "--clients", "2", "--ops", "5", "--records", "50"},
		{"compare", "scan", "--size", "16KiB", "--selectivity", "1%"},
		{"compare", "raid5", "--size", "64KiB"},
		{"compare", "replicate", "--copies", "2", "--size", "64", "--breakdown"},
		{"storage", "run", filepath.Join("..", "..", "examples", "storage", "oltp.spc"), "--requests", "5"},
		{"compare", "allreduce", "--ranks", "4,6", "--size", "4"},
		{"compare", "ftbcast", "--ranks", "8", "--size", "8"},
		{"compare", "txlog", "--ranks", "2", "--size", "8", "--count", "2"},
		{"goal", "proxies", "--app", "milc", "--iterations", "1"},
		{"compare", "pagefault", "--policy", "pio", "--size", "4KiB", "--breakdown"},
		{"compare", "accumulate", "--size", "16", "--waterfall", "spin-int-sc17,spin-int"},
		{"compare", "hpus", "--hpus", "1", "--size", "512", "--handler-time", "50ns", "--waterfall", "spin-dis,spin-int"},
	}
	for _, table := range []string{"latency", "breakdown", "stats", "state", "events", "log"} {
		commands = append(commands, []string{"run", scenario, "--table", table})
	}
	for _, c := range slices.Concat(commands, others, connections) {
		header, err := csv.NewReader(strings.NewReader(string(output(t, append(c, "--format", "csv")...)))).Read()
		require.NoError(t, err)
		for _, key := range header {
			base, is := published(key)
			if is {
				require.True(t, slices.ContainsFunc([]string{base, base + "_us", base + "_s", base + "_GiBps", base + "_MBps", base + "_kops"}, func(of string) bool { return slices.Contains(header, of) }), base)
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
			if key != "provenance" && key != digest.Field {
				known(key, "goal run --on "+on)
			}
		}
	}
	require.NoError(t, os.Remove(schedule))
}

// published tells whether a column stands beside another one with published numbers, and which.
func published(key string) (of string, is bool) {
	for _, suffix := range []string{"_published_ns", "_published_us", "_published_s", "_published_GiBps", "_published_MBps", "_published_kops", "_published", "_deviation", "_difference"} {
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
