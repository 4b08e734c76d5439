package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/cli"
)

// ring is a scenario of thousands of events.
const ring = `
profile: spin-int
ranks: 2
entries: [{name: a, ranks: all, length: 64}]
programs:
  - ranks: all
    steps:
      - repeat:
          times: 100
          steps: [{put: {to: (rank + 1) % ranks, entry: a, bytes: 8}}, {wait: {entry: a, messages: 1}}]
output: {stats: all}
`

// cutRun is a run that is cut off; the test then looks at its files.
type cutRun struct {
	args []string
	not  []string // flags for files that only another run of the command has
	ext  string   // of a file that may instead be a folder
}

// cutRuns maps the path of every command that has limits and writes files to
// its runs. One experiment stands for all of them, because they have the same
// command.
var cutRuns = map[string][]cutRun{
	"run":     {{args: []string{"ring.yaml"}}},
	"compare": {{args: []string{"pingpong", "--profile", "spin-int", "--mode", "rdma", "--size", "8", "--breakdown"}}},
	"goal run": {
		{args: []string{"a.goal", "--on", "nodes", "--matching", "host"}},
		{args: []string{"a.goal"}, not: []string{"links", "pcap", "plot", "samples"}},
	},
	"reproduce":       {{args: []string{"spin17", "--only", "hpus"}, ext: ".html"}},
	"goal proxies":    {{args: []string{"--app", "milc", "--iterations", "1"}, not: []string{"samples"}}},
	"graph run":       {{args: []string{"two.graph", "--profile", "spin-int", "--kernel", "bfs", "--ranks", "2", "--mode", "host", "--breakdown"}}},
	"storage run":     {{args: []string{"oltp.spc", "--profile", "spin-int", "--requests", "2", "--mode", "rdma"}, not: []string{"samples"}}},
	"handler run":     {{args: []string{"count", "--hex", "0011"}}},
	"handler profile": {{args: []string{"count", "--hex", "0011"}}},
}

// outputsOf returns the flags of a command that name output files.
func outputsOf(c *cobra.Command) (flags []*pflag.Flag) {
	for _, name := range cli.OutputFlags {
		if f := c.Flags().Lookup(name); f != nil {
			flags = append(flags, f)
		}
	}
	return flags
}

// limited returns the paths of the commands that have limits and write files.
func limited(c *cobra.Command) (paths []string) {
	path := strings.TrimPrefix(c.CommandPath(), "spinsim ")
	if c.Runnable() && c.Flags().Lookup("event-limit") != nil && len(outputsOf(c)) > 0 {
		if strings.HasPrefix(path, "compare ") {
			path = "compare"
		}
		paths = append(paths, path)
	}
	for _, sub := range c.Commands() {
		paths = append(paths, limited(sub)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// A run that is cut off leaves no file that looks complete. The old file stays,
// and the error says so, or the new file has a mark. The test asks for every
// kind of file of every command. A run that is not cut off writes them all.
func TestFilesOfCutRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"ring.yaml": ring, "two.graph": "0 1\n", "oltp.spc": "0,0,4096,w,0.0\n0,8,4096,r,0.001\n"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run([]string{"goal", "gen", "bcast-binomial", "--ranks", "8", "-o", "a.goal"}, &out, &errs), errs.String())
	var known []string
	for path := range cutRuns {
		known = append(known, path)
	}
	slices.Sort(known)
	require.Equal(t, limited(rootCommand()), known, "commands with limits and files have a run here")
	for path, runs := range cutRuns {
		for _, r := range runs {
			t.Run(path+" "+strings.Join(r.args, " "), func(t *testing.T) { r.cut(t, path) })
		}
	}
}

// cut cuts a run off in several ways.
func (r *cutRun) cut(t *testing.T, path string) {
	args := append(strings.Fields(path), r.args...)
	c, _, err := rootCommand().Find(args)
	require.NoError(t, err)
	files := map[string]string{} // names by flags as errors have them
	for _, f := range outputsOf(c) {
		kind, _ := pflag.UnquoteUsage(f)
		if !slices.Contains(r.not, f.Name) {
			flag := "--" + f.Name
			if f.Shorthand != "" {
				flag = "-" + f.Shorthand
			}
			files[flag] = f.Name + strings.TrimPrefix(strings.ReplaceAll(kind, ".pftrace", ".json"), "FILE")
			if r.ext != "" {
				files[flag] = f.Name + r.ext
			}
			args = append(args, flag, files[flag])
		}
	}
	for _, limit := range [][]string{{"--event-limit", "3"}, {"--until", "1ps"}, {"--time-limit", "1ns"}, nil} {
		for _, name := range files {
			require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
		}
		var out, errs bytes.Buffer
		status := run(append(slices.Clone(args), limit...), &out, &errs)
		want := exitFailed
		if limit == nil || limit[0] == "--time-limit" && status == exitOK { // over before it was told
			limit, want = nil, exitOK
		}
		require.Equal(t, want, status, "%v: %s", limit, &errs)
		for flag, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			switch {
			case limit == nil:
				require.NotEqual(t, "old", string(text), name)
			case string(text) == "old":
				require.Contains(t, errs.String(), flag+" "+name, "%v", limit)
			default:
				require.Contains(t, string(text), "incomplete: stopped by the limit of", "%v: %s", limit, name)
			}
		}
	}
}
