package networks

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
)

// A pipe is read once, although it gets another time when something is written.
func TestPipe(t *testing.T) {
	text, err := os.ReadFile(saved(t, "allreduce=ring", 2, 64))
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	sent := make(chan error, 1)
	go func() { sent <- os.WriteFile(name, text, 0) }()
	p, err := profile.Load("inc")
	require.NoError(t, err)
	at, err := collectives.At(p, experiment.Values{"workload": name, "on": byHost})
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.NoError(t, os.Remove(name)) // who reads again fails at once
	_, err = collectives.Measure(t.Context(), at)
	require.NoError(t, err)
}
