package goal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// WriteFile uses the form and packing of the file's name, and ReadFile reads
// the schedule back.
func TestFiles(t *testing.T) {
	t.Parallel()
	s, err := ReadText(strings.NewReader(smallText), ReadOptions{})
	require.NoError(t, err)
	dir := t.TempDir()
	for ext, magic := range map[string]string{"": "", ".gz": "\x1f\x8b", ".xz": "\xfd7zXZ", ".zst": "\x28\xb5\x2f\xfd"} {
		for name, content := range map[string]string{"s.goal": smallText, "s.bin": string(smallBinary)} {
			path := filepath.Join(dir, name+ext)
			require.NoError(t, WriteFile(path, s))
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			if ext == "" {
				require.Equal(t, content, string(raw))
			}
			require.True(t, bytes.HasPrefix(raw, []byte(magic)), path)
			again, err := ReadFile(path, ReadOptions{})
			require.NoError(t, err, path)
			require.Equal(t, smallBinary, binaryOf(t, again))
			require.Equal(t, name == "s.goal", again.Named())
		}
		path := filepath.Join(dir, "bad"+ext)
		require.NoError(t, os.WriteFile(path, []byte("nothing"), 0o600))
		_, err := ReadFile(path, ReadOptions{})
		require.ErrorContains(t, err, path)
	}
	_, err = ReadFile(filepath.Join(dir, "none"), ReadOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, WriteFile(filepath.Join(dir, "none", "s.bin"), s), os.ErrNotExist)
}
