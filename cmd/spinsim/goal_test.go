package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The exit status distinguishes a schedule that does not finish from one that
// cannot be read, for programs that call the command.
func TestGoalExitStatus(t *testing.T) {
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "a.goal")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	status := func(args ...string) int { return run(append([]string{"goal", "run"}, args...), io.Discard, io.Discard) }
	fine := file("num_ranks 1\nrank 0 {\ncalc 5\n}\n")
	require.Equal(t, exitOK, status(fine))
	require.Equal(t, exitFailed, status(file("num_ranks 1\nrank 0 {\nrecv 8b from 0\n}\n")))
	require.Equal(t, exitInput, status(file("num_ranks 0\n")))
	require.Equal(t, exitInput, status(file("")))
	require.Equal(t, exitInput, status(fine, "--G", "-1"))
	require.Equal(t, exitInput, status(fine+".missing"))
}
