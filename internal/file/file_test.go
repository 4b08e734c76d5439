package file

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// names lists a folder.
func names(t *testing.T, dir string) (list []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func content(t *testing.T, name string) string {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}

// Until the commit the old file stays complete; a discarded one leaves nothing.
func TestOldFileStaysUntilCommit(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.csv")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o640))
	w, err := Create(name)
	require.NoError(t, err)
	_, err = io.WriteString(w, "new and longer")
	require.NoError(t, err)
	require.Equal(t, "old", content(t, name))
	require.NoError(t, w.Discard())
	require.Equal(t, "old", content(t, name))
	require.Equal(t, []string{"a.csv"}, names(t, dir))

	w, err = Create(name)
	require.NoError(t, err)
	_, err = io.WriteString(w, "n")
	require.NoError(t, err)
	require.NoError(t, w.Commit())
	require.NoError(t, w.Discard(), "after a commit nothing is left to discard")
	require.Equal(t, "n", content(t, name))
	require.Equal(t, []string{"a.csv"}, names(t, dir))
	info, err := os.Stat(name)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm(), "the mode of the old file")
}

// A write that fails makes the commit fail, and the old file stays. Here the
// descriptor is closed behind the writer's back, as a full disk would refuse
// it.
func TestFailedWriteIsNoCommit(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.csv")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o666))
	w, err := Create(name)
	require.NoError(t, err)
	require.NoError(t, w.out.Close())
	_, err = io.WriteString(w, "new")
	require.ErrorContains(t, err, name)
	require.Error(t, w.Commit())
	require.Equal(t, "old", content(t, name))
	require.Equal(t, []string{"a.csv"}, names(t, dir))
}

// Links are followed: writing replaces their target, not the link.
func TestLinksStay(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	require.NoError(t, os.Mkdir(other, 0o777))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("other/target", link))
	require.NoError(t, Write(link, []byte("one"))) // the target is not there yet
	require.NoError(t, Write(link, []byte("two")))
	require.Equal(t, "two", content(t, filepath.Join(other, "target")))
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, "other/target", to)
	loop := filepath.Join(dir, "loop")
	require.NoError(t, os.Symlink("loop", loop))
	require.ErrorContains(t, Write(loop, nil), "too many symbolic links")
}

// Devices and pipes are written as they are.
func TestDevicesArePassedThrough(t *testing.T) {
	require.NoError(t, Write(os.DevNull, []byte("x")))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeCharDevice, "still a device")

	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	read := make(chan string, 1)
	go func() {
		b, err := os.ReadFile(pipe)
		read <- string(b) + errorText(err)
	}()
	require.NoError(t, Write(pipe, []byte("through")))
	require.Equal(t, "through", <-read)
	require.Equal(t, []string{"pipe"}, names(t, filepath.Dir(pipe)))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A file in a folder that takes no new files is overwritten in place, and only
// after all bytes are there.
func TestFolderThatTakesNoNewFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.csv")
	require.NoError(t, os.WriteFile(name, []byte("an old and longer text"), 0o666))
	w := &Writer{name: name, target: name, moved: true}
	var err error
	w.out, err = create(t.TempDir(), "a.csv", 0o600, os.OpenFile)
	require.NoError(t, err)
	_, err = io.WriteString(w, "new")
	require.NoError(t, err)
	require.Equal(t, "an old and longer text", content(t, name))
	require.NoError(t, w.Commit())
	require.Equal(t, "new", content(t, name))
	require.Empty(t, names(t, filepath.Dir(w.out.Name())))
}

func TestBadNames(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
	for name, want := range map[string]string{
		dir:                          "is a directory",
		filepath.Join(dir, "no/a"):   "no such file or directory",
		filepath.Join(dir, "file/a"): "not a directory",
		"":                           "expected the name of a file",
		filepath.Join(dir, strings.Repeat("x", 300)): "name too long",
	} {
		_, err := Create(name)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "write "+name)
		require.NotContains(t, err.Error(), ".tmp", "the name that the user gave")
	}
	require.Equal(t, []string{"file"}, names(t, dir))
	long := filepath.Join(dir, strings.Repeat("ä", 120))
	require.NoError(t, Write(long, []byte("x")))
	require.Equal(t, "x", content(t, long))
}

func TestReadIsBounded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(name, make([]byte, 100), 0o666))
	b, err := Read(name, 100)
	require.NoError(t, err)
	require.Len(t, b, 100)
	_, err = Read(name, 99)
	require.EqualError(t, err, name+": more than 99 bytes, the most that such a file may have")
	_, err = Read("/dev/zero", 1<<20)
	require.ErrorContains(t, err, "/dev/zero: more than 1048576 bytes")
	_, err = Read(filepath.Dir(name), 10)
	require.ErrorContains(t, err, "is a directory")
	_, err = Read(name+"x", 10)
	require.ErrorIs(t, err, os.ErrNotExist)
}
