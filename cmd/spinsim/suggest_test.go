package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/profile"
)

// suggested returns the completions of a line, without their explanations.
func suggested(t *testing.T, line ...string) (values []string) {
	var out, errs bytes.Buffer
	require.Zero(t, run(append([]string{"__completeNoDesc"}, line...), &out, &errs), "%q: %s", line, &errs)
	for text := range strings.Lines(out.String()) {
		if text = strings.TrimSuffix(text, "\n"); !strings.HasPrefix(text, ":") {
			values = append(values, text)
		}
	}
	return values
}

// Shells complete values of flags, the last value of a list, overrides section
// by section, and arguments.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"compare bcast --profile spin-i":                    "spin-int spin-int-sc17",
		"compare bcast --profile spin-int,exa":              "spin-int,exanest spin-int,exanest-gemm spin-int,exanest-qfdb",
		"compare bcast --profile exanest,spin-int@2026-11":  "exanest,spin-int@2026-11",
		"compare bcast --waterfall eth":                     "eth-npf",
		"compare bcast --mode rdma,spin":                    "rdma,spin-store rdma,spin-stream",
		"compare bcast --engine ":                           "wazero",
		"compare bcast --set h":                             "hpu. host.",
		"compare bcast --set hpu.co":                        "hpu.cores= hpu.contexts= hpu.copy= hpu.costs=",
		"compare osu --experiment l":                        "latency",
		"compare bcast --handler ":                          "wasm",
		"compare bcast --format ":                           "table markdown csv json ndjson parquet",
		"compare bcast --mode rdma,":                        "rdma,p4 rdma,spin-store rdma,spin-stream",
		"compare bcast --profile spin-int,spin-i":           "spin-int,spin-int-sc17",
		"compare bcast --param s":                           "size=",
		"compare bcast --param ":                            "mode= ranks= size=",
		"compare bcast --param mode=":                       "mode=rdma mode=p4 mode=spin-store mode=spin-stream",
		"compare bcast --param mode=p4,spin":                "mode=p4,spin-store mode=p4,spin-stream",
		"compare bcast --param size=":                       "",
		"run ../../examples/scenarios/sizes.yaml --param ":  "size= count=",
		"run ../../examples/scenarios/sizes.yaml --param c": "count=",
		"run nowhere.yaml --param ":                         "",
		"run --param ":                                      "",
		"handler new --lang ":                               "go c cpp rust assemblyscript",
		"osu latency --format o":                            "osu",
		"osu allreduce --algorithms ":                       "exanet mpich",
		"version --format ":                                 "text json",
		"compare npf-v":                                     "npf-versus-part",
		"handler run count":                                 "count count_c",
		"profile ib":                                        "ib-npf",
		"goal gen halo":                                     "halo2d halo3d",
		"goal run --on ":                                    "model nodes",
		"scenario example ":                                 "broadcast count sizes",
		"storage generate o":                                "oltp",
		"doctor handlers":                                   "handlers-go handlers-c handlers-cpp handlers-rust handlers-assemblyscript",
		"doctor simulate ":                                  "",
		"help compare npf-v":                                "npf-versus-part",
		"run --table l":                                     "latency log",
		"compare bcast --set pools":                         "pools=",
		"compare bcast --set fabric.exanest.z_l":            "fabric.exanest.z_links=",
	} {
		words := strings.Split(line, " ")
		require.Equal(t, want, strings.Join(suggested(t, words...), " "), line)
	}
}

// completing returns a command whose flags have their completion. To make all
// commands takes long, so it is asked for many flags.
func completing(t *testing.T, words []string) *cobra.Command {
	root := rootCommand()
	line := slices.Concat([]string{"__completeNoDesc"}, words, []string{""})
	require.Zero(t, cli.Execute(root, line, &bytes.Buffer{}, &bytes.Buffer{}), "%q", line)
	c, _, err := root.Find(words)
	require.NoError(t, err)
	return c
}

// Every command accepts the values that completion suggests for its flags.
func TestSuggestionsAreTaken(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "two.goal"), []byte("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"), 0o600))
	t.Chdir(dir)
	tried, kit := 0, map[string]bool{}
	seen := map[string]bool{} // the same values of a flag of several commands are tried once
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if c.Flags().Lookup("until") == nil {
			return // no other error could end the command before it runs
		}
		words := strings.Fields(c.CommandPath())[1:]
		var asked *cobra.Command
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "set" || f.Name == "param" || fileEndings[f.Name] || f.Value.Type() == "bool" || kit[f.Name] && ofKit(c, f) {
				return
			}
			kit[f.Name] = kit[f.Name] || ofKit(c, f)
			if asked == nil {
				asked = completing(t, words)
			}
			complete, ok := asked.GetFlagCompletionFunc(f.Name)
			if !ok {
				return // the shell completes names of files
			}
			values, _ := complete(asked, nil, "")
			of := f.Name + strings.Join(values, " ")
			if seen[of] {
				return
			}
			seen[of] = true
			for _, value := range values {
				value, _, _ = strings.Cut(value, "\t") // an explanation follows
				var out, errs bytes.Buffer
				all := slices.Concat(words, without(f.Name, whole()[c.CommandPath()]), []string{"--until=never", "--" + f.Name + "=" + value})
				require.Equal(t, exitInput, run(all, &out, &errs), "%q", all)
				require.NotContains(t, errs.String(), "--"+f.Name+":", "%q", all)
				tried++
			}
		})
	}
	visit(rootCommand())
	require.Greater(t, tried, 100)
}

// fileEndings are flags of files whose endings are suggested.
var fileEndings = map[string]bool{"plot": true, "svg": true, "trace": true, "handler": true, "links": true, "samples": true, "load": true, "pcap": true}

// Each suggestion for --set is a path of a profile, so the error is about the
// value.
func TestSuggestedOverrides(t *testing.T) {
	require.Greater(t, len(profile.Fields()), 150)
	for _, path := range profile.Fields() {
		_, err := profile.Load("exanest", path+"=")
		require.ErrorContains(t, err, "no value, expected one behind =", path)
		require.NotContains(t, err.Error(), "no field", path)
	}
}

// Every command has a manual page with its flags, its subcommands as one types
// them, and the version of spinsim. The page is the same each time.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	require.Zero(t, run([]string{"man", filepath.Join(dir, "man1")}, &out, &errs), &errs)
	pages := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if c.IsAdditionalHelpTopicCommand() {
			return
		}
		b, err := os.ReadFile(filepath.Join(dir, "man1", manualName(c)+".1"))
		require.NoError(t, err)
		page := string(b)
		require.Contains(t, page, `"spinsim devel"`)
		require.NotContains(t, page, "Jan 0001")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				require.Contains(t, page, `\fB--`+f.Name+`\fP`, c.CommandPath())
			}
		})
		for line := range strings.SplitSeq(c.Long, "\n") {
			if strings.HasPrefix(line, "  spinsim ") {
				require.Contains(t, page, "\n"+line+"\n", c.CommandPath())
			}
		}
		pages++
	}
	visit(rootCommand())
	require.Greater(t, pages, 75)
	before, err := os.ReadFile(filepath.Join(dir, "man1", "spinsim-run.1"))
	require.NoError(t, err)
	require.Zero(t, run([]string{"man", filepath.Join(dir, "man1")}, &out, &errs), &errs)
	again, err := os.ReadFile(filepath.Join(dir, "man1", "spinsim-run.1"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(again))
	require.Equal(t, exitInput, run([]string{"man", filepath.Join(dir, "man1", "spinsim-run.1")}, &out, &errs))
}
