package part

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The manual and docs/memory.md list the parts of the latency in the order that
// decides which part a moment belongs to.
func TestPartsAreDocumentedInOrder(t *testing.T) {
	names := pagefaultPartNames()
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	require.Contains(t, words(pagefault.Long), strings.Join(names, ", "))
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "memory.md"))
	require.NoError(t, err)
	require.Contains(t, words(string(page)), "`"+strings.Join(names, "`, `")+"`")
}
