//go:build wasmtime

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/examples/scenarios"
)

// TestScenariosOnBothEngines runs whole scenarios on both engines: the examples
// and the scenarios of package scenario's tests. TestAttack draws others. Exit
// status, tables, messages with the places of traps, timeline and capture are
// the same, byte by byte.
func TestScenariosOnBothEngines(t *testing.T) {
	all, err := scenarios.All()
	require.NoError(t, err)
	for _, e := range all {
		require.NotEqual(t, exitInput, sameOnBothEngines(t, e.Name, t.TempDir(), e.Text, nil))
	}
	ran := 0
	datadriven.Walk(t, "../../internal/lab/scenario/testdata/run", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var args []string
			for _, a := range d.CmdArgs {
				if a.Key == "set" {
					args = append(args, "--set", a.Vals[0])
				}
			}
			if sameOnBothEngines(t, d.Pos, t.TempDir(), []byte(d.Input), args) != exitInput {
				ran++
			}
			return d.Expected
		})
	})
	require.Greater(t, ran, 10)
}

// sameOnBothEngines runs a scenario and returns its status.
func sameOnBothEngines(t *testing.T, name, dir string, text []byte, args []string) int {
	file := filepath.Join(dir, "s.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	var first []byte
	var status int
	for _, engine := range []string{"wazero", "wasmtime"} {
		var out, errs bytes.Buffer
		trace, capture := filepath.Join(dir, "t.json"), filepath.Join(dir, "c.pcapng")
		got := run(append([]string{"-q", "run", file, "--engine", engine, "--format", "json", "--trace", trace, "--pcap", capture}, args...), &out, &errs)
		everything := append(out.Bytes(), errs.Bytes()...)
		for _, made := range []string{trace, capture} {
			data, err := os.ReadFile(made)
			require.True(t, err == nil || got != exitOK, "%s: %v", name, err)
			everything = append(everything, data...)
		}
		// the build has both, the run one
		everything = []byte(withoutEngine(string(everything)))
		if first == nil {
			first, status = everything, got
			if status == exitInput { // nothing has run
				return status
			}
			continue
		}
		require.Equal(t, status, got, name)
		for k := range min(len(first), len(everything)) {
			require.False(t, first[k] != everything[k], "%s:\n%s\n%q is not\n%q", name, text, around(first, k), around(everything, k))
		}
		require.Len(t, everything, len(first), name)
	}
	return status
}

// wasmtime reserves gigabytes for each instance, whose refusal ends the command
// as any other.
func TestWasmtimeIsBounded(t *testing.T) {
	for _, b := range bounds {
		if b.flag == "" {
			bounded(t, t.TempDir(), b.shell, strings.Fields("compare bcast --profile spin-int --mode spin-stream --ranks 9 --size 8 --engine wasmtime"))
		}
	}
}

// around returns the text near place k.
func around(b []byte, k int) []byte { return b[max(0, k-300):min(len(b), k+100)] }
