// Package exampletest is what tests of examples have in common.
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

// Documented fails a test unless a document of docs shows what a program prints
// when it runs with each of the values, one after the other.
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
