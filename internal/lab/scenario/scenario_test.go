package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/count"
	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// printed returns the output of a command like spinsim run for a scenario.
func printed(name, text string, o Options, args ...string) (string, error) {
	c := experiment.Command(Any(), experiment.CommandOptions{Use: "run FILE", Command: "run", Input: func(c *cobra.Command, _ []string) (*experiment.Made, error) {
		f, err := Open(name, []byte(text), o)
		if err != nil {
			return nil, err
		}
		for flag, value := range map[string]string{"format": f.Format(), "engine": f.Engine()} {
			if value != "" && !c.Flags().Changed(flag) {
				err = errors.Join(err, c.Flags().Set(flag, value))
			}
		}
		if seed := f.Seed(); seed != nil {
			err = errors.Join(err, c.Flags().Set("seed", fmt.Sprint(*seed)))
		}
		return &experiment.Made{Experiment: f.Experiment(), Inputs: []provenance.Input{provenance.NewInput(name, []byte(text))}}, err
	}})
	c.SilenceErrors, c.SilenceUsage = true, true
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SetArgs(append(args, name))
	err := c.Execute()
	return out.String(), err
}

// TestScripts runs the scenarios of testdata. "run" prints the output of
// spinsim run, "check" the errors of a scenario.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Ext(path) != "" {
			return
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			o := Options{Read: input.Read} // the modules of the repository are not below this folder
			var args []string
			for _, a := range d.CmdArgs {
				switch a.Key {
				case "set":
					o.Set = a.Vals
					for _, v := range a.Vals {
						args = append(args, "--set", v)
					}
				case "engine":
					o.Engine = a.Vals[0]
					args = append(args, "--engine", a.Vals[0])
				case "table":
					o.Table = a.Vals[0]
					args = append(args, "--table", a.Vals[0])
				}
			}
			s, err := parse("s.yaml", []byte(d.Input), nil)
			if err == nil {
				_, err = s.Plan(o)
			}
			switch {
			case err != nil:
				// the lists grow
				text := strings.ReplaceAll(err.Error(), strings.Join(profile.Names(), ", "), "PROFILES")
				text = regexp.MustCompile(`fabric\.kind: want .*, got`).ReplaceAllString(text, "fabric.kind: want KINDS, got")
				return strings.ReplaceAll(text, strings.Join(handlers.Names(), ", "), "LIBRARIES") + "\n"
			case d.Cmd == "check":
				return "ok\n"
			}
			o.Set, o.Engine = nil, ""
			out, err := printed("s.yaml", d.Input, o, args...)
			if err != nil {
				text := err.Error()
				// package runtime has its own words for the waiting processes
				if stuck := new(sim.StuckError); errors.As(err, &stuck) {
					text = strings.Replace(text, stuck.Error(), "nothing left to happen ...", 1)
				}
				out += "error: " + text + "\n"
			}
			return hashes.ReplaceAllString(ofProgram.ReplaceAllString(out, ""), "HASH")
		})
	})
}

// What changes with the program: the lines with the origin of a result, and
// hashes.
var (
	ofProgram = regexp.MustCompile(`(?m)^(spinsim |# sealed ).*\n`)
	hashes    = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
)

const ring = `
profile: spin-dis
ranks: 6
seed: 3
entries:
  - {name: inbox, ranks: all, length: 10000, handlers: {module: count}}
  - {name: data, ranks: all, pt: 1, length: 10000}
programs:
  - ranks: all
    buffers: [{name: out, bytes: 10000, fill: pattern}]
    steps:
      - put: {to: (rank + 1) % ranks, entry: inbox, from: out, ack: ack, count: 3}
      - put: {to: (rank + 2) % ranks, entry: data, from: out, ack: ack}
      - wait: {acks: 4}
expect:
  - memory: {of: data, ranks: 2..last, same_as: {of: out, rank: rank - 2}}
output: {events: all, stats: all, state: [{of: inbox}], memory: [{of: data, bytes: 64}]}
`

// Law 2 of the house: the same seed gives the same bytes, with a tracer and
// without, the first time and the second.
func TestSameSeedSameBytes(t *testing.T) {
	var outputs []string
	for range 2 {
		out, err := printed("ring.yaml", ring, Options{}, "--format", "json")
		require.NoError(t, err)
		outputs = append(outputs, out)
	}
	out, err := printed("ring.yaml", ring, Options{}, "--format", "json", "--trace", filepath.Join(t.TempDir(), "t.json"))
	require.NoError(t, err)
	require.Equal(t, outputs[0], outputs[1])
	require.Equal(t, outputs[0], out)

	seed := uint64(4)
	out, err = printed("ring.yaml", strings.Replace(ring, "seed: 3", "seed: 4", 1), Options{Seed: &seed}, "--format", "json", "--table", "memory")
	require.NoError(t, err)
	was, err := printed("ring.yaml", ring, Options{}, "--format", "json", "--table", "memory")
	require.NoError(t, err)
	hex := regexp.MustCompile(`"hex": .*`)
	require.NotEqual(t, hex.FindAllString(was, -1), hex.FindAllString(out, -1), "the pattern must depend on the seed")
}

// The caller's ranks replace the scenario's, and expressions use them.
func TestOptionsReplace(t *testing.T) {
	s, err := Parse("ring.yaml", []byte(ring))
	require.NoError(t, err)
	p, err := s.Plan(Options{Ranks: 3, Set: []string{"fabric.kind=crossbar", "hpu.cores=1"}})
	require.NoError(t, err)
	require.Equal(t, 3, p.ranks)
	require.Equal(t, 1, p.profile.HPU.Cores)
	require.Equal(t, "crossbar", p.profile.Fabric.Kind)
	result, err := p.Run(context.Background(), runtime.Config{})
	require.NoError(t, err)
	require.Equal(t, 1, result.Checked)
}

// Files named in a scenario are relative to it, whatever the working directory.
func TestFilesAreRelative(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("mine.yaml", "base: spin-int\nname: mine\nhpu: {cores: 3}\n")
	write("hello.bin", "hello")
	write("bad.wasm", "not a module")
	write("one.yaml", "switches: [{name: a}]\nnodes: [{at: a, count: 7}]\n")
	write("s.yaml", `
profile: mine.yaml
topology: {kind: file, topology: one.yaml}
ranks: 1
entries: [{name: a, ranks: 0, fill: {file: hello.bin}}]
expect: [{memory: {of: a, equals: {hex: 68656c6c6f}}}]
output: {memory: [{of: a}]}
`)
	p, err := Load(filepath.Join(dir, "s.yaml"), Options{})
	require.NoError(t, err)
	require.Equal(t, 3, p.profile.HPU.Cores)
	require.Equal(t, 7, p.profile.Fabric.Topology.Nodes[0].Count)
	result, err := p.Run(context.Background(), runtime.Config{})
	require.NoError(t, err)
	require.Equal(t, 1, result.Checked)

	write("s.yaml", "profile: mine.yaml\nranks: 1\nentries: [{name: a, ranks: 0, handlers: {module: bad.wasm}}]\n")
	_, err = Load(filepath.Join(dir, "s.yaml"), Options{})
	require.ErrorContains(t, err, "s.yaml:3: entries[0].handlers.module: module bad")
	_, err = Load(filepath.Join(dir, "none.yaml"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A module cannot ask for entry options that the scenario sets itself. They are
// refused like such options in the scenario.
func TestNeedsAgainstTheScenario(t *testing.T) {
	dir := t.TempDir()
	m, err := manifest.Read(count.Library.Wasm)
	require.NoError(t, err)
	for i, name := range portals.EntryNames {
		m.Needs.EntryOptions = []string{strings.ToLower(name)}
		wasm, err := manifest.Write(count.Library.Wasm, m)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "m.wasm"), wasm, 0o600))
		for _, given := range []string{"", ", options: [op_get]"} {
			s := "profile: spin-int\nranks: 2\nentries:\n  - {name: e, ranks: 0, length: 64, handlers: {module: m.wasm}" + given + "}\nprograms: []\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte(s), 0o600))
			_, err = Load(filepath.Join(dir, "s.yaml"), Options{})
			switch bit := portals.EntryOptions(1) << i; {
			case bit == portals.OptMEEventCTComm: // every scenario has it
				require.NoError(t, err)
			case ownOptions&bit != 0:
				require.ErrorContains(t, err, "s.yaml:4: entries[0].handlers")
				require.ErrorContains(t, err, " needs entry option "+strings.ToLower(name)+", which ")
			case given != "" && name != "OP_GET":
				require.ErrorContains(t, err, "s.yaml:4: entries[0].options: module m.wasm needs "+strings.ToLower(name)+" as well")
			}
		}
	}
}

// An interrupted run has no result.
func TestInterrupt(t *testing.T) {
	s, err := Parse("s.yaml", []byte("profile: spin-int\nranks: 2\nprograms: [{ranks: 0, steps: [{repeat: {times: 1000000000, steps: [{compute: 1ns}]}}]}]\n"))
	require.NoError(t, err)
	p, err := s.Plan(Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result, err := p.Run(ctx, runtime.Config{})
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, result)
}

// Aliases are values. Too many are an error and do not cause a wait.
func TestAliases(t *testing.T) {
	s, err := Parse("s.yaml", []byte("profile: spin-int\nranks: 2\nentries:\n  - &e {name: a, ranks: 0}\nprograms: []\nexpect: []\noutput: {}\n"))
	require.NoError(t, err)
	require.Len(t, s.Entries, 1)
	bomb := "profile: spin-int\nranks: 1\nprograms:\n- ranks: 0\n  steps:\n  - &a0 {mark: x}\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("  - &a%d {repeat: {times: 2, steps: [%s]}}\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	_, err = Parse("bomb.yaml", []byte(bomb))
	require.ErrorContains(t, err, "more than 131072 values")
}

// FuzzPlan gives files to reader and checker. They must return, whatever the
// content.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(ring))
	for _, name := range []string{"run/steps", "run/failures", "check/errors"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		for part := range strings.SplitSeq(string(data), "----\n") {
			if m := regexp.MustCompile(`(?s)(?:^|\n)(?:run|check)[^\n]*\n(.*)`).FindStringSubmatch(part); m != nil {
				f.Add([]byte(m[1]))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parse("f.yaml", data, nil)
		if err == nil { // also if something could not be read
			_, err = s.Plan(Options{Ranks: 2})
		}
		var field *FieldError
		if err != nil && !errors.As(err, &field) {
			t.Fatalf("an error without a place: %v", err)
		}
	})
}
