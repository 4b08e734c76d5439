package goal

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pack := map[string]func(io.Writer) (io.WriteCloser, error){
		"":     func(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil },
		".gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		".xz":  func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) },
		".zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	}
	for ext, packer := range pack {
		for name, content := range map[string][]byte{"s.goal": []byte(smallText), "s.bin": smallBinary} {
			path := filepath.Join(dir, name+ext)
			f, err := os.Create(path)
			require.NoError(t, err)
			w, err := packer(f)
			require.NoError(t, err)
			_, err = w.Write(content)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			require.NoError(t, f.Close())
			s, err := ReadFile(path, ReadOptions{})
			require.NoError(t, err, path)
			require.Equal(t, smallBinary, binaryOf(t, s))
		}
		path := filepath.Join(dir, "bad"+ext)
		require.NoError(t, os.WriteFile(path, []byte("nothing"), 0o600))
		_, err := ReadFile(path, ReadOptions{})
		require.ErrorContains(t, err, path)
	}
	_, err := ReadFile(filepath.Join(dir, "none"), ReadOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
