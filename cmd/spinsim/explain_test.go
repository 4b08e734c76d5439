package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example of docs/explain.md prints the output that the page shows.
func TestExplainDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/explain.md")
	require.NoError(t, err)
	block := func(kind string) string {
		_, rest, found := strings.Cut(string(page), "```"+kind+"\n")
		require.True(t, found, "no block %s", kind)
		text, _, found := strings.Cut(rest, "```\n")
		require.True(t, found)
		return text
	}
	file := filepath.Join(t.TempDir(), "example")
	require.NoError(t, os.WriteFile(file, []byte(block("script")), 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run([]string{"explain", file}, &out, &errs), &errs)
	require.Equal(t, block("output"), out.String())
	require.Empty(t, errs.String())
}
