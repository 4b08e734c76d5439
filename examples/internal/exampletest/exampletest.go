// Package exampletest has helpers for the tests of examples.
package exampletest

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Documented requires that a document of docs shows the output of a program
// that runs with each of the values, one after the other.
func Documented[V any](t *testing.T, name string, run func(context.Context, io.Writer, V) error, values []V) {
	t.Helper()
	var output bytes.Buffer
	for _, v := range values {
		require.NoError(t, run(t.Context(), &output, v))
	}
	require.NotEmpty(t, output.String())
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	require.Contains(t, string(document), output.String())
}
