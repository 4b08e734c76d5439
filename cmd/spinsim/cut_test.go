package main

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/report"
)

// ring is a scenario of thousands of events.
const ring = `
profile: spin-int
ranks: 2
parameters: {times: 100}
entries: [{name: a, ranks: all, length: 64}]
programs:
  - ranks: all
    steps:
      - repeat:
          times: $times
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
	"run":     {{args: []string{"ring.yaml"}, not: []string{"samples"}}},
	"compare": {{args: []string{"pingpong", "--profile", "spin-int", "--mode", "rdma", "--size", "8", "--breakdown"}}},
	"goal run": {
		{args: []string{"a.goal", "--on", "nodes", "--matching", "host"}},
		{args: []string{"a.goal"}, not: []string{"links", "pcap", "plot", "samples"}},
	},
	"reproduce":       {{args: []string{"spin17", "--only", "hpus"}, ext: ".html"}},
	"goal proxies":    {{args: []string{"--app", "milc", "--iterations", "1"}, not: []string{"samples"}}},
	"graph run":       {{args: []string{"two.graph", "--profile", "spin-int", "--kernel", "bfs", "--ranks", "2", "--mode", "host", "--breakdown"}}},
	"storage run":     {{args: []string{"oltp.spc", "--profile", "spin-int", "--requests", "2", "--mode", "rdma"}, not: []string{"samples"}}},
	"handler run":     {{args: []string{"count", "--size", "8"}, not: []string{"samples"}}},
	"handler profile": {{args: []string{"count", "--hex", "0011"}}},
	"mpirun":          nil, // which needs Debian's packages: TestProgramIsAnExperiment
	"identify":        {{args: []string{"--profile", "spin-int", "--measured", "a.tsv", "--questions", "open.tsv"}}},
}

// Files of a run of identify.
const (
	ownMeasured  = ownColumns + "pingpong\tmode=rdma size=8\tlatency\t600\tns\texact\n"
	ownQuestions = "question\twhat\talternative\tset\tsource\nbus\t\ttoday\t\tours\nbus\t\tslow\tdma.latency=80ns\tours\n"
)

// outputsOf returns the flags of a command that name output files, without the
// hidden ones for profiles of the program: any run has those.
func outputsOf(c *cobra.Command) (flags []*pflag.Flag) {
	for _, name := range cli.OutputFlags {
		if f := c.Flags().Lookup(name); f != nil && !f.Hidden {
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
	for name, text := range map[string]string{"a.tsv": ownMeasured, "open.tsv": ownQuestions, "ring.yaml": ring, "two.graph": "0 1\n", "oltp.spc": "0,0,4096,w,0.0\n0,8,4096,r,0.001\n"} {
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
	c, _, err := rootCommand(args...).Find(args)
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
				require.Equal(t, seal.Whole, checked(t, text).State, name)
			case string(text) == "old":
				require.Contains(t, errs.String(), flag+" "+name, "%v", limit)
			default:
				require.Contains(t, string(text), "incomplete: stopped by the limit of", "%v: %s", limit, name)
				v := checked(t, text)
				require.Equal(t, seal.Cut, v.State, name)
				require.Contains(t, v.Cut, "limit of ", name)
			}
		}
		r.formats(t, c, limit)
	}
}

// formats looks at what a command that is cut prints for programs: nothing, or
// a seal that says so.
func (r *cutRun) formats(t *testing.T, c *cobra.Command, limit []string) {
	if c.Flags().Lookup("format") == nil {
		return
	}
	for _, f := range report.Formats {
		if f == report.TextFormat || f == report.MarkdownFormat {
			continue
		}
		args := slices.Concat(strings.Fields(c.CommandPath())[1:], r.args, []string{"--format", string(f)}, limit)
		if c.Parent().Name() == "compare" {
			args = slices.Concat([]string{"compare"}, r.args, []string{"--format", string(f)}, limit)
		}
		var out, errs bytes.Buffer
		switch status := run(args, &out, &errs); {
		case status == exitInput: // the command does not have it
			require.Zero(t, out.Len())
		case status == exitOK:
			require.Equal(t, seal.Whole, checked(t, out.Bytes()).State, "%v: %s", args, &out)
		case out.Len() > 0:
			require.Equal(t, seal.Cut, checked(t, out.Bytes()).State, "%v: %s", args, &out)
		}
	}
}

// checked is the verdict on bytes.
func checked(t require.TestingT, data []byte) *seal.Verdict {
	v, err := seal.Check(bytes.NewReader(data))
	require.NoError(t, err)
	return v
}

// unsealed maps outputs to the reason why they have no seal.
var unsealed = map[string]string{
	"sweep --slurm":          "people change it",
	"handler build --output": "a module is an input, and has its hash in every record",
}

// otherOutputs maps the commands without limits that write files to arguments
// with which they write one for each of the flags.
var otherOutputs = map[string][]string{
	"goal convert":       {"a.goal", "--output", "out.goal"},
	"goal gen":           {"gather", "--output", "out.goal"},
	"goal merge":         {"a.goal", "a.goal", "--output", "out.goal"},
	"goal viz":           {"a.goal", "--output", "out.json"},
	"report":             {"a.json", "--output", "out.html"},
	"rerun":              {"a.json", "--output", "out.json"},
	"storage generate":   {"oltp", "--requests", "3", "--output", "out.spc"},
	"topology":           {"exanest", "--svg", "out.png"},
	"goal import chakra": {"a.0.et", "--output", "out.goal"},

	"goal import liballprof": {"a-0.txt", "--output", "out.goal"},
	"goal import dumpi":      {"d-0.txt", "--output", "out.goal"},
}

// Every file that a flag of a command names is sealed. Every changed bit and
// every missing end of each kind is noticed.
func TestEveryOutputIsSealed(t *testing.T) {
	t.Chdir(t.TempDir())
	var errs bytes.Buffer
	write := func(name string, args ...string) {
		require.NoError(t, os.WriteFile(name, output(t, args...), 0o600))
	}
	write("a.goal", "goal", "gen", "gather")
	require.NoError(t, os.WriteFile("a.0.et", []byte(chakraTrace), 0o600))
	require.NoError(t, os.WriteFile("a-0.txt", []byte(liballprofTrace), 0o600))
	require.NoError(t, os.WriteFile("d-0.txt", []byte(dumpiTrace), 0o600))
	write("a.json", "compare", "pingpong", "--profile", "spin-int", "--mode", "rdma", "--size", "8")
	write("a.json", "compare", "pingpong", "--profile", "spin-int", "--mode", "rdma", "--size", "8", "--format", "json")
	list := slices.Collect(maps.Keys(otherOutputs))
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "spinsim ")
		for _, f := range outputsOf(c) {
			of := path
			if c.HasParent() && c.Parent().Name() == "compare" {
				of = "compare"
			}
			if _, there := cutRuns[of]; there || c.HasParent() && c.Parent().Name() == "osu" || !c.Runnable() {
				continue
			}
			if unsealed[path+" --"+f.Name] == "" {
				require.Contains(t, list, path, "--%s writes a file", f.Name)
				require.Contains(t, otherOutputs[path], "--"+f.Name, path)
			}
		}
		for _, sub := range c.Commands() {
			all(sub)
		}
	}
	all(rootCommand())
	for path, args := range otherOutputs {
		var out bytes.Buffer
		require.Equal(t, exitOK, run(append(strings.Fields(path), args...), &out, &errs), "%s: %s", path, &errs)
		data, err := os.ReadFile(args[len(args)-1])
		require.NoError(t, err)
		require.Equal(t, seal.Whole, checked(t, data).State, path)
		eachChange(data, func(at int, is []byte) {
			require.Contains(t, []seal.State{seal.Unsealed, seal.Changed}, checked(t, data[:at]).State, "%s until byte %d", path, at)
			// the layout of an object may change
			if v := checked(t, is); v.Kind != seal.JSON || v.State == seal.Changed {
				require.Contains(t, []seal.State{seal.Unsealed, seal.Changed}, v.State, "%s with byte %d %q", path, at, is[at])
			}
		})
	}
}

// eachChange calls check with copies of data in which a bit of the byte at is
// different, except of the line break at the end. The draws are its own: package
// rapid takes a tenth of the time that a command of the scripts needs to begin.
func eachChange(data []byte, check func(at int, is []byte)) {
	for range 100 {
		at := rand.IntN(len(data) - 1) //nolint:gosec // no secret
		is := bytes.Clone(data)
		is[at] ^= 1 << rand.IntN(8) //nolint:gosec // no secret
		check(at, is)
	}
}

// Each reader of our own files refuses one in which a bit has changed, or
// whose end is missing, unless only the layout of an object has.
func TestReadersRefuseChanges(t *testing.T) {
	t.Chdir(t.TempDir())
	network := []string{"--profile", "exanest", "--topology", "1x1x1", "--set", "os.kind=none", "--set", "smmu.kind=none"}
	run1 := append([]string{"compare", "bcast", "--ranks", "2", "--size", "8", "--mode", "rdma", "--links", "loads.json"}, network...)
	document := output(t, append(run1, "--format", "json")...)
	loads, err := os.ReadFile("loads.json")
	require.NoError(t, err)
	for _, r := range []struct {
		args []string
		was  []byte
	}{
		{[]string{"report", "is", "-o", "page.html"}, document},
		{[]string{"topology", "exanest", "--load", "is"}, loads},
		{[]string{"goal", "stat", "is"}, output(t, "goal", "gen", "gather")},
		{[]string{"storage", "run", "is", "--profile", "spin-int", "--mode", "rdma"}, output(t, "storage", "generate", "oltp", "--requests", "2")},
	} {
		refused := func(is []byte) bool {
			require.NoError(t, os.WriteFile("is", is, 0o600))
			var out, errs bytes.Buffer
			status := run(r.args, &out, &errs)
			require.Contains(t, []int{exitOK, exitInput}, status, errs.String())
			return status == exitInput
		}
		require.False(t, refused(r.was), r.args)
		from := bytes.Index(r.was, []byte(seal.Announcement))
		eachChange(r.was, func(at int, is []byte) {
			if !refused(is) {
				same, err := provenance.Differences(r.was, is)
				require.NoError(t, err)
				require.Empty(t, same, "%v: %q", r.args, is)
			}
			if at >= from+len(seal.Announcement) {
				require.True(t, refused(r.was[:at]), "%v until byte %d", r.args, at)
			}
		})
	}
}

// What other programs have sealed is unchanged, and the line names them.
func TestVerifyNamesOtherPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	object, err := seal.Object([]byte(`{"provenance":{"spinsim":{"version":"v0.0.1"},"command":"compare pingpong"},"rows":[]}`), "")
	require.NoError(t, err)
	older := []byte(`{"a":1,"sha256":"7e4afc2bb2d6ff4e9c4bc8e3e0ef1ba1a0ea34f0bb7dbe1ac1e1ee5cb3c5b52a"}`)
	var changed *seal.ChangedError
	_, err = seal.CheckObject(older)
	require.ErrorAs(t, err, &changed)
	// as before there was complete
	older = bytes.Replace(older, []byte(changed.Recorded), []byte(changed.Is), 1)
	for _, tc := range []struct {
		data []byte
		exit int
		want string
	}{
		{seal.Mark{Kind: seal.CSV, Program: "v0.0.1"}.Below([]byte("x\n"), "# ", "\n"), exitOK, `complete and unchanged, but made by another spinsim \(v0.0.1\); this is \S+ \(CSV\)`},
		{object, exitOK, `complete and unchanged, but made by another spinsim \(v0.0.1\); this is \S+ \(JSON, record [0-9a-f]{12}\)`},
		{older, exitFailed, `unchanged; an older spinsim did not record whether it is complete \(JSON\)`},
		{nil, exitFailed, `no seal: not made by spinsim, or its end is missing`},
	} {
		require.NoError(t, os.WriteFile("a", tc.data, 0o600))
		var out, errs bytes.Buffer
		require.Equal(t, tc.exit, run([]string{"verify", "a"}, &out, &errs), errs.String())
		require.Regexp(t, "^a: "+tc.want+"\n$", out.String())
	}
}
