package file

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// folders makes a folder with files and links, in and out of its folder in.
func folders(t *testing.T) string {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, folder := range []string{filepath.Join(in, "sub"), out, filepath.Join(dir, "inner")} {
		require.NoError(t, os.MkdirAll(folder, 0o700))
	}
	for name, text := range map[string]string{"in/a": "a", "in/sub/b": "b", "out/c": "c"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for link, to := range map[string]string{
		"in/file": "../out/c", "in/folder": "../out", "in/absolute": out, "in/missing": "../out/new", "in/inside": "sub/b", "in/whole": filepath.Join(in, "sub"),
		"door": "in", "in/loop": "loop",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	return dir
}

// Below a folder a name may be written in any way, and lead through links; what
// leads out is refused, and neither read nor written.
func TestBelow(t *testing.T) {
	dir := folders(t)
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	t.Chdir(in)
	door := filepath.Join(dir, "door")
	for _, c := range []struct{ folder, name, text string }{
		{".", "a", "a"},
		{".", "./sub/../a", "a"},
		{".", "sub/b", "b"},
		{"", "a", "a"},
		{".", filepath.Join(in, "a"), "a"},
		{".", "../in/a", "a"},
		{in, "a", "a"},
		{"sub", "sub/b", "b"},
		{".", "inside", "b"},
		{".", "whole/b", "b"},
		{door, filepath.Join(door, "a"), "a"},
		{".", filepath.Join(door, "a"), "a"},
		{door, "a", "a"},
		{".", "../out/c", ""},
		{".", filepath.Join(out, "c"), ""},
		{".", "file", ""},
		{".", "folder/c", ""},
		{".", "absolute/c", ""},
		{"sub", "a", ""},
		{"sub", "../inner/x", ""},
		{".", "..", ""},
		{".", "sub/../../out/c", ""},
		{".", "folder/../out/c", ""},
		{"sub", "sub/../a", ""},
		{".", "../inner/x", ""},
		{".", "/etc/passwd", ""},
		{".", "missing", ""},
		{".", "folder/new", ""},
		{".", "/dev/null", ""},
		{".", "loop", ""},
	} {
		data, err := ReadBelow(c.folder, c.name, 10)
		w, also := CreateBelow([]string{c.folder}, c.name)
		if c.text == "" {
			require.Error(t, err, c)
			require.Error(t, also, c)
			continue
		}
		require.NoError(t, err, c)
		require.Equal(t, c.text, string(data), c)
		require.NoError(t, also, c)
		_, err = w.Write([]byte(c.text))
		require.NoError(t, err)
		require.NoError(t, w.Commit(), c)
	}
	require.Equal(t, []string{"c"}, names(t, out))
	require.Equal(t, "c", content(t, filepath.Join(out, "c")))
	require.Empty(t, names(t, filepath.Join(dir, "inner")))
}

// The error names what is outside, and several folders may be allowed.
func TestOutside(t *testing.T) {
	dir := folders(t)
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	t.Chdir(in)

	_, err := ReadBelow(".", "../out/c", 10)
	require.EqualError(t, err, `"../out/c" is outside, expected a file below "."`)
	_, err = ReadBelow(".", "none", 10)
	require.EqualError(t, err, "open none: no such file or directory")
	_, err = ReadBelow(".", "sub", 10)
	require.ErrorContains(t, err, "directory")
	w, err := CreateBelow([]string{".", out}, "../out/new")
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	require.Equal(t, []string{"c", "new"}, names(t, out))
}

// A link that is made after the check leads nowhere: neither the temporary file
// nor the file itself appears elsewhere.
func TestBelowWhenALinkComesLater(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.MkdirAll("in/sub", 0o700))
	require.NoError(t, os.Mkdir("out", 0o700))
	w, err := CreateBelow([]string{"in"}, "in/sub/a")
	require.NoError(t, err)
	require.NoError(t, os.Rename("in/sub", "in/moved"))
	require.NoError(t, os.Symlink("../out", "in/sub"))
	require.Error(t, w.Commit())
	require.Empty(t, names(t, "out"))
}
