package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// Every file that a flag of a command names is written, or the command fails
// with one line. The tests of seals list the commands and flags.
func TestFullDiskOfEveryOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"ring.yaml": strings.ReplaceAll(ring, "times: 100", "times: 2"), "two.graph": "0 1\n", "oltp.spc": "0,0,4096,w,0.0\n0,8,4096,r,0.001\n",
		"a.0.et": chakraTrace, "a-0.txt": liballprofTrace, "d-0.txt": dumpiTrace, "a.tsv": ownMeasured, "open.tsv": ownQuestions,
		"a.goal": "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n",
		"a.json": string(output(t, "compare", "pingpong", "--profile", "spin-int", "--mode", "rdma", "--size", "8", "--format", "json")),
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	for path, args := range otherOutputs {
		args = slices.Concat(strings.Fields(path), args[:len(args)-1], []string{"full" + filepath.Ext(args[len(args)-1])})
		failsOnFullDisk(t, args)
	}
	for path, runs := range cutRuns {
		for _, r := range runs {
			words := strings.Fields(path)
			c, _, err := rootCommand(words...).Find(words)
			require.NoError(t, err)
			if path == "compare" {
				c, _, err = rootCommand("compare", "pingpong").Find([]string{"compare", "pingpong"})
				require.NoError(t, err)
			}
			for _, f := range outputsOf(c) {
				if kind, _ := pflag.UnquoteUsage(f); !slices.Contains(r.not, f.Name) && r.ext == "" {
					ext := strings.TrimPrefix(strings.ReplaceAll(kind, ".pftrace", ".json"), "FILE")
					failsOnFullDisk(t, slices.Concat(strings.Fields(path), r.args, []string{"--" + f.Name, "full" + ext}))
				}
			}
		}
	}
}

// failsOnFullDisk runs a command whose last argument names a file.
func failsOnFullDisk(t *testing.T, args []string) {
	name := args[len(args)-1]
	_ = os.Remove(name)
	require.NoError(t, os.Symlink("/dev/full", name))
	var out, errs bytes.Buffer
	require.Equal(t, exitFailed, run(args, &out, &errs), "%q: %s", args, &errs)
	require.Regexp(t, `^spinsim: .*no space left on device.*\n$`, errs.String(), "%q", args)
	require.Equal(t, 1, strings.Count(errs.String(), "no space left"), "%q: %s", args, &errs)
}
