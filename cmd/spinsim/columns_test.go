package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
)

// The topic "columns" lists every column that any command writes, under the
// command's name.
func TestHelpKnowsAllColumns(t *testing.T) {
	help := string(output(t, "help", "columns"))
	known := func(key, where string) {
		require.Contains(t, help, "\n"+key+" ", "%s writes %s", where, key)
	}
	schedule := filepath.Join(t.TempDir(), "a.goal")
	output(t, "goal", "gen", "bcast-binomial", "--ranks", "3", "-o", schedule)
	scenario := filepath.Join("..", "..", "examples", "scenarios", "count.yaml")
	commands := [][]string{
		{"compare", "replicate", "--copies", "2", "--size", "64", "--breakdown"},
		{"graph", "run", filepath.Join("..", "..", "examples", "graph", "roads.txt"), "--ranks", "2"},
		{"storage", "run", filepath.Join("..", "..", "examples", "storage", "oltp.spc"), "--requests", "5"},
		{"compare", "npf-beff", "--ranks", "2", "--sent", "4KiB", "--repetitions", "1", "--loop", "0us"},
		{"goal", "proxies", "--app", "milc", "--iterations", "1"},
		{"compare", "pagefault", "--policy", "pio", "--size", "4KiB", "--breakdown"},
		{"compare", "accumulate", "--size", "16", "--waterfall", "spin-int-sc17,spin-int"},
		{"compare", "hpus", "--hpus", "1", "--size", "512", "--handler-time", "50ns", "--waterfall", "spin-dis,spin-int"},
	}
	for _, e := range experiment.All() {
		if len(e.Smoke) > 0 {
			commands = append(commands, append([]string{"compare", e.Name}, smoke(e, 0)...))
		}
	}
	for _, table := range []string{"points", "path", "finish"} {
		commands = append(commands, []string{"goal", "run", schedule, "--critical-path", "--table", table})
	}
	for _, table := range []string{"latency", "breakdown", "stats", "state", "events", "log"} {
		commands = append(commands, []string{"run", scenario, "--table", table})
	}
	for _, c := range commands {
		header, err := csv.NewReader(strings.NewReader(string(output(t, append(c, "--format", "csv")...)))).Read()
		require.NoError(t, err)
		for _, key := range header {
			base, ok := published(key)
			if ok {
				require.True(t, slices.ContainsFunc(header, func(of string) bool { return of == base || strings.HasPrefix(of, base+"_") && of != key }), base)
				continue
			}
			known(key, strings.Join(c, " "))
		}
	}
	require.NoError(t, os.Remove(schedule))
}

// published returns the column beside which a column of published numbers
// stands, if it is one.
func published(key string) (of string, ok bool) {
	for _, suffix := range []string{"_published", "_deviation", "_difference"} {
		base, unit, ok := strings.Cut(key, suffix)
		if ok && base != "littles_law" && (unit == "" || suffix == "_published" && unit[0] == '_') {
			return base, true
		}
	}
	return "", false
}
