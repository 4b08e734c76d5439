//go:build toolchain

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestToolchainCheckouts ports the folders in $SPINSIM_CHECKOUTS, checkouts of
// public repositories, whose code is not ours to keep.
func TestToolchainCheckouts(t *testing.T) {
	for _, dir := range filepath.SplitList(os.Getenv("SPINSIM_CHECKOUTS")) {
		var out, errs bytes.Buffer
		status := run([]string{"port", dir, "--out", filepath.Join(t.TempDir(), "out")}, &out, &errs)
		require.Zero(t, status, "%s: %s%s", dir, &out, &errs)
	}
}
