package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/osu"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// whole maps commands with numeric flags to arguments with which they would
// run. Experiments have such arguments in Experiment.Smoke. It is made when a
// test asks for it: this program is also the command spinsim of the scripts.
var whole = sync.OnceValue(func() map[string][]string {
	whole := map[string][]string{
		"spinsim advise":           {"count"},
		"spinsim handler run":      {"count", "--size", "8"},
		"spinsim handler profile":  {"count", "--size", "8"},
		"spinsim handler inspect":  {"count"},
		"spinsim run":              {"count.yaml"},
		"spinsim sweep":            {"--slurm", "job.sh", "compare", "pingpong"},
		"spinsim explain":          {"count.yaml"},
		"spinsim goal run":         {"two.goal"},
		"spinsim goal viz":         {"two.goal", "--output", "t.json"},
		"spinsim goal gen":         {"halo2d", "--output", "t.goal"},
		"spinsim goal proxies":     nil,
		"spinsim topology path":    {"0", "1"},
		"spinsim storage run":      {"a.spc"},
		"spinsim graph run":        {"two.graph", "--ranks", "2"},
		"spinsim storage generate": {"oltp"},
		"spinsim reproduce":        {"spin17", "-o", "folder"},
		"spinsim identify":         {"part"},
	}
	for _, b := range osu.All() {
		whole["spinsim osu "+b.Name] = nil
	}
	for _, e := range experiment.All() {
		whole["spinsim compare "+e.Name] = smoke(e, 0)
	}
	return whole
})

func init() {
	for _, e := range experiment.All() {
		for i := range e.Axes {
			if a := &e.Axes[i]; a.Kind == report.Text && len(a.Of) == 0 {
				texts = append(texts, a.Name)
			}
		}
	}
}

// smoke returns the arguments of a smoke point of the experiment, if it has so
// many.
func smoke(e *experiment.Experiment, point int) []string {
	if point >= len(e.Smoke) {
		return nil
	}
	device := e.DefaultProfiles()[0]
	p, err := profile.Load(device)
	if err != nil {
		panic(err)
	}
	at, err := e.At(p, e.Smoke[point])
	if err != nil {
		panic(err)
	}
	args := []string{"--profile", device}
	for i := range e.Axes {
		if a := &e.Axes[i]; !a.Fixed() {
			args = append(args, "--"+a.Name, strings.ReplaceAll(fmt.Sprint(at.Value(a.Name)), " ", ""))
		}
	}
	return args
}

// without returns args without a flag and its value, so that the test can give
// the flag otherwise.
func without(flag string, args []string) []string {
	if i := slices.Index(args, "--"+flag); i >= 0 {
		return slices.Delete(slices.Clone(args), i, i+2)
	}
	return args
}

// besides maps flags to other arguments that they need to have a meaning.
var besides = map[string][]string{
	"spinsim goal run --eager":          {"--on", "nodes"},
	"spinsim goal run --buffers":        {"--on", "nodes"},
	"spinsim goal run --ranks-per-node": {"--on", "nodes"},
	"spinsim goal run --cold":           {"--on", "nodes"},
	"spinsim goal run --seed":           {"--on", "nodes"},
	"spinsim goal gen --root":           {"gather"},
	"spinsim goal gen --ways":           {"dissemination"},
	"spinsim goal gen --segment":        {"ring-pipelined"},
	"spinsim goal gen --seed":           {"permutation"},
}

// ofKit reports whether an experiment has a flag from the kit: all have the same
// then, and one is tried.
func ofKit(c *cobra.Command, f *pflag.Flag) bool {
	e, err := experiment.Find(c.Name())
	return err == nil && c.Parent().Name() == "compare" && e.Axis(f.Name) == nil
}

// texts are flags that are not numbers: names, files, switches, values of a
// profile or a state. A numeric flag must not be among them.
var texts = strings.Fields(`quiet all breakdown samples app by define durable guarded client critical-path ack engine expect experiment fault firmware format handler handler-host-file header help hex host-file hupcf include lang matching mode noise
	noise-coscheduled on output packets payload payload-file completion plain plot links load svg topology policy pool profile type op kernel set side source spinsim state state-file state-format table to trace waterfall node rank
	version step path benchmark transport algorithms full omb scaling shape param points resume part slurm strip title only list pcap pcap-at dissector`)

// numbers calls f for every numeric flag of every command.
func numbers(t *testing.T, c *cobra.Command, f func(c *cobra.Command, flag *pflag.Flag)) {
	for _, sub := range c.Commands() {
		numbers(t, sub, f)
	}
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		for _, name := range texts {
			if flag.Name == name {
				kind := flag.Value.Type()
				require.NotContains(t, kind, "int", "--%s of %s", flag.Name, c.CommandPath())
				require.NotEqual(t, "duration", kind, "--%s of %s", flag.Name, c.CommandPath())
				return
			}
		}
		f(c, flag)
	})
}

// writeInputs writes the files that the arguments in whole name.
func writeInputs(t *testing.T, dir string) {
	for name, text := range map[string]string{
		"two.goal":  "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n",
		"a.spc":     "0,0,512,W,0.1\n",
		"two.graph": "0 1\n",
		"a.tsv":     ownMeasured,
		"open.tsv":  ownQuestions,
		"count.yaml": `{profile: spin-dis, ranks: 2, entries: [{name: counter, ranks: 1, length: 64KiB, handlers: {module: count}}],
			programs: [{ranks: 0, steps: [put: {to: 1, entry: counter, bytes: 8}]}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// A text that is not a number, or not in the flag's range, is one error of one
// line. It names the flag, in words of this program.
func TestEveryNumberIsChecked(t *testing.T) {
	dir := t.TempDir()
	writeInputs(t, dir)
	t.Chdir(dir)
	tried, seen, kit := 0, map[string]bool{}, map[string]bool{}
	numbers(t, rootCommand(), func(c *cobra.Command, flag *pflag.Flag) {
		path := c.CommandPath()
		if kit[flag.Name] && ofKit(c, flag) {
			return
		}
		kit[flag.Name] = kit[flag.Name] || ofKit(c, flag)
		if osu, ok := strings.CutPrefix(path, "spinsim osu "); ok && osu != "latency" && osu != "allreduce" {
			return // one of the two has all their flags
		}
		args, known := whole()[path]
		if !known && flag.Value.Type() == "string" {
			return // a name or a number
		}
		args = without(flag.Name, args)
		more := besides[path+" --"+flag.Name]
		if path == "spinsim goal gen" && more != nil {
			args, more = append([]string{}, args...), nil
			args[0] = besides[path+" --"+flag.Name][0]
		}
		values := []string{"-1", strings.Repeat("9", 30), "x", "1e99", "", "-" + strings.Repeat("9", 30), "1.5.5", "0x", "∞", "NaN"}
		if seen[flag.Name] {
			values = values[:3]
		}
		seen[flag.Name] = true
		if path+" --"+flag.Name == "spinsim compare osu-ranks --warmup" {
			values = []string{"-2", "x"} // -1 is each benchmark's own number
		}
		for _, value := range values {
			all := append(append(strings.Fields(path)[1:], args...), append(more, fmt.Sprintf("--%s=%s", flag.Name, value))...)
			var out, errs bytes.Buffer
			status := run(all, &out, &errs)
			said := errs.String()
			require.Equal(t, exitInput, status, "%q: %s%s", all, said, out.String())
			require.True(t, strings.HasPrefix(said, "spinsim: --"+flag.Name+": "), "%q: %s", all, said)
			require.Equal(t, 1, strings.Count(said, "\n"), "%q: %s", all, said)
			for _, foreign := range []string{"strconv", "parsing", "invalid syntax", "unknown unit", "duration", "mpi: ", "goal: ", "[", "%!"} {
				require.NotContains(t, said, foreign, "%q", all)
			}
			require.Empty(t, out.String(), "%q", all)
			tried++
		}
	})
	require.Greater(t, tried, 600)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 6, "nothing was written")
}

// nonsense maps flags that are not numbers to values that they do not take.
var nonsense = map[string]string{
	"app": "x", "by": "x", "experiment": "x", "hupcf": "x", "policy": "x", "pool": "x", "side": "x", "shape": "x", "engine": "x", "expect": "none/x", "fault": "x", "format": "x", "handler": "none.wasm", "handler-host-file": "none/x", "hex": "x", "host-file": "none/x",
	"lang": "x", "links": "x", "load": "none/x", "svg": "x", "topology": "x", "matching": "x", "mode": "x", "noise": "none/x", "on": "x", "packets": "none/x", "pcap": "x", "pcap-at": "x", "only": "x", "payload-file": "none/x", "plot": "x", "samples": "x", "table": "x",
	"transport": "x", "algorithms": "x", "benchmark": "x", "scaling": "x", "omb": "x", "path": "x", "to": "x", "trace": "x", "waterfall": "x", "state-format": "x", "state-file": "none/x", "state": "x=y",
}

// alone maps flags to their arguments, if they replace the arguments in whole
// or need others.
var alone = map[string][]string{
	"spinsim handler run --packets":               {"count"},
	"spinsim handler run --payload-file":          {"count"},
	"spinsim handler run --hex":                   {"count"},
	"spinsim handler run --state-file":            {"count", "--hex", "00"},
	"spinsim handler profile --packets":           {"count"},
	"spinsim handler profile --payload-file":      {"count"},
	"spinsim handler profile --hex":               {"count"},
	"spinsim handler profile --state-file":        {"count", "--hex", "00"},
	"spinsim handler profile --handler-host-file": {"count", "--hex", "00", "--handler-host-memory", "8"},
	"spinsim goal run --table":                    {"two.goal"},
	"spinsim goal run":                            {"two.goal", "--on", "nodes"},
	"spinsim goal run --noise":                    {"two.goal"},
	"spinsim topology":                            {"exanest"},
	"spinsim handler run --handler-host-file":     {"count", "--hex", "00", "--handler-host-memory", "8"},
	"spinsim handler new":                         {"folder"},
	"spinsim handler build":                       nil,
	"spinsim goal stat":                           {"two.goal"},
	"spinsim goal convert":                        {"two.goal"},
	"spinsim goal merge":                          {"two.goal", "two.goal"},
	"spinsim goal import chakra":                  {"a.0.et"},
	"spinsim goal import liballprof":              {"a-0.txt"},
	"spinsim goal import dumpi":                   {"d-0.txt"},
}

// A text that a flag does not take, or the name of a missing file, is one error
// of one line that names the flag.
func TestEveryTextIsChecked(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "two.goal"), []byte("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.spc"), []byte("0,0,512,W,0.1\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "two.graph"), []byte("0 1\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "count.yaml"), []byte("{profile: spin-dis, ranks: 2, programs: [{ranks: 0, steps: [compute: 1us]}]}"), 0o600))
	t.Chdir(dir)
	tried := map[string]bool{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		c.Flags().VisitAll(func(flag *pflag.Flag) {
			value, ok := nonsense[flag.Name]
			if !ok || flag.Value.Type() == "bool" {
				return
			}
			path := c.CommandPath()
			args, known := alone[path+" --"+flag.Name]
			if !known {
				args, known = alone[path]
			}
			if !known {
				args = whole()[path]
			}
			all := append(append(strings.Fields(path)[1:], args...), "--"+flag.Name+"="+value)
			var out, errs bytes.Buffer
			require.Equal(t, exitInput, run(all, &out, &errs), "%q: %s%s", all, &errs, &out)
			require.True(t, strings.HasPrefix(errs.String(), "spinsim: --"+flag.Name+": "), "%q: %s", all, &errs)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), "%q: %s", all, &errs)
			require.Empty(t, out.String(), "%q", all)
			tried[flag.Name] = true
		})
	}
	visit(rootCommand())
	require.Len(t, tried, len(nonsense), "flags that no command has: %v", nonsense)
}

// Every command refuses a flag of one value that is given twice, before it
// looks at anything else.
func TestEveryFlagIsGivenOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	values := map[string]string{"bool": "true", "string": "x", "duration": "1s"}
	tried, kit := 0, map[string]bool{}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if !c.Runnable() {
			return // a text that help shows
		}
		var some []string // arguments that the command could have
		for c.ValidateArgs(some) != nil {
			require.Less(t, len(some), 4, c.CommandPath())
			some = append(some, "x")
		}
		c.InheritedFlags() // also those of the commands above
		c.Flags().VisitAll(func(flag *pflag.Flag) {
			if _, list := flag.Value.(pflag.SliceValue); list || kit[flag.Name] && ofKit(c, flag) {
				return
			}
			kit[flag.Name] = kit[flag.Name] || ofKit(c, flag)
			one := "--" + flag.Name + "=" + cmp.Or(values[flag.Value.Type()], "1")
			all := slices.Concat(strings.Fields(c.CommandPath())[1:], []string{one, one}, some)
			var out, errs bytes.Buffer
			require.Equal(t, exitInput, run(all, &out, &errs), "%q: %s", all, &errs)
			require.Regexp(t, `^spinsim: --`+flag.Name+`: given twice, expected once(; several values are one list, such as .*)?\n$`, errs.String(), "%q", all)
			require.Empty(t, out.String(), "%q", all)
			tried++
		})
	}
	visit(rootCommand())
	require.Greater(t, tried, 500)
}
