package handlers_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
)

// Shared has every file that modules are compiled from, too, and no other.
func TestSharedIsComplete(t *testing.T) {
	total := 0
	for _, name := range handlers.Names() {
		files, err := filepath.Glob(filepath.Join(name, "*.go"))
		require.NoError(t, err)
		want := make(map[string][]byte)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			if !strings.HasSuffix(file, "_test.go") && !bytes.Contains(text, []byte("//go:build !tinygo\n")) {
				want[filepath.Base(file)] = text
			}
		}
		require.Equal(t, want, handlers.Shared(name), name)
		total += len(want)
	}
	require.Greater(t, total, 20)
}
