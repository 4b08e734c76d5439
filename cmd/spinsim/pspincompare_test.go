package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The script finds the runs of handlers in traces of cores: a first one, the
// median of the others, and what it costs here. The trace is ours, in the format
// of RI5CY's tracer.
func TestPspinCompare(t *testing.T) {
	run := func(args ...string) (string, error) {
		c := exec.Command("bash", append([]string{"../../scripts/pspin-compare.sh"}, args...)...)
		c.Env = append(os.Environ(), "SPINSIM="+fakeSpinsim(t))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	const symbols, trace = "testdata/pspin/symbols.txt", "testdata/pspin/trace_core_00_0.log"
	out, err := run("-s", "64", symbols, trace)
	require.NoError(t, err, out)
	require.Equal(t, `handler                    runs       cold       warm   our cold   our warm
empty_ph                      3         18          6         18          6
other_ph                      1         13          -          -          -
`, out)
	for want, args := range map[string][]string{
		"pspin-compare: expected [-s BYTES] ELF TRACE...\n": {symbols},
		"pspin-compare: none: cannot be read\n":             {symbols, "none"},
		"pspin-compare: -s: x, expected bytes\n":            {"-s", "x"},
	} {
		out, err := run(args...)
		require.Error(t, err)
		require.Equal(t, want, out)
	}
	out, err = run(symbols, symbols)
	require.Error(t, err)
	require.Contains(t, out, "no handler ran between two nops of hpu_run")
}

// fakeSpinsim is a program that answers as compare pspin does for the handler of
// the trace.
func fakeSpinsim(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "spinsim")
	text := "#!/bin/sh\nprintf 'benchmark,profile,warm_cycles,cold_cycles\\npspin,pspin,6,18\\n'\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o700)) //nolint:gosec // a program
	return file
}
