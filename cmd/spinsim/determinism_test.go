package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// The same command prints the same bytes whatever the number of processors,
// whether or not a timeline is recorded, and every time.
func TestOutputDoesNotDependOnTheMachine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	sweep := []string{"compare", "bcast", "--ranks", "2,3,8,37", "--size", "0,8,20000", "--format", "csv"}
	one := []string{
		"compare", "bcast", "--ranks", "13", "--size", "20000", "--mode", "spin-stream", "--profile", "spin-dis", "--format", "csv",
	}
	var table, row, timeline []byte
	for i := range 4 {
		runtime.GOMAXPROCS(1 + i%2)
		same(t, &table, output(t, sweep...))
		same(t, &row, output(t, one...))
		trace := filepath.Join(t.TempDir(), "t.pftrace")
		same(t, &row, output(t, append(one, "--trace", trace)...))
		data, err := os.ReadFile(trace)
		require.NoError(t, err)
		same(t, &timeline, data)
	}
	require.Greater(t, bytes.Count(table, []byte("\n")), 90, "two profiles, four numbers of ranks, three sizes, four modes")
	require.Greater(t, len(timeline), 10_000)
}

// same requires that data equals what the first call has stored in first.
func same(t *testing.T, first *[]byte, data []byte) {
	if *first == nil {
		*first = data
	}
	require.True(t, bytes.Equal(*first, data))
}

// output runs the command and returns what it prints.
func output(t *testing.T, args ...string) []byte {
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(args, &out, &errs), "%s", &errs)
	return out.Bytes()
}
