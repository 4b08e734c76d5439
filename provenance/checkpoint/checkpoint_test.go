package checkpoint

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, path string, part Part) *Folder {
	t.Helper()
	f, err := Open(path, part)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// What was put is there for whoever opens the folder next, also if a program was killed while it wrote, and for others who write at the same time.
func TestResultsStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new[1]*")
	f := open(t, path, Part{})
	key, err := f.Key("a")
	require.NoError(t, err)
	require.NoError(t, f.Put(key, "point a", map[string]int{"x": 1}))
	second := open(t, path, Part{2, 3})
	require.NoError(t, second.Put("b", "point b", 2))
	other := open(t, path, Part{})
	require.NoError(t, other.Put("c", "point c", 3))
	require.NoError(t, f.Put("d", "point d", 4))

	name := filepath.Join(path, "points.ndjson")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append(text, `{"key":"e","poi`...), 0o600))

	f = open(t, path, Part{})
	for k, want := range map[string]string{key: `{"x":1}`, "b": "2", "c": "3", "d": "4"} {
		got, ok := f.Get(k)
		require.True(t, ok, k)
		require.JSONEq(t, want, string(got))
	}
	_, ok := f.Get("e")
	require.False(t, ok)
	require.NoError(t, f.Put("e", "point e", 5))
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Regexp(t, `"d".*\n\{"key":"e","point":"point e","result":5\}\n$`, string(text))
	text, err = os.ReadFile(filepath.Join(path, "part-2-of-3.ndjson"))
	require.NoError(t, err)
	require.JSONEq(t, `{"key":"b","point":"point b","result":2}`, string(text))
}

// Others counts what nobody has asked for.
func TestOthers(t *testing.T) {
	path := t.TempDir()
	f := open(t, path, Part{})
	require.NoError(t, f.Put("a", "", 1))
	require.NoError(t, f.Put("b", "", 1))
	f = open(t, path, Part{})
	f.Get("a")
	f.Get("z")
	require.NoError(t, f.Put("c", "", 1))
	require.Equal(t, 1, f.Others())
}

// A line that is none of ours is named.
func TestWrongFolders(t *testing.T) {
	for text, where := range map[string]string{
		"{\n": ":1: no result", "{\"key\":\"a\",\"point\":\"\",\"result\":1}\nx\n": ":2: no result", "{\"key\":\"a\"}\n": ":1: no result",
		"{\"key\":\"a\",\"result\":1,\"more\":2}\n": ":1: no result",
	} {
		path := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(path, "x.ndjson"), []byte(text), 0o600))
		_, err := Open(path, Part{})
		require.ErrorContains(t, err, filepath.Join(path, "x.ndjson")+where)
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(file, Part{})
	require.Error(t, err)
	empty := t.TempDir()
	open(t, empty, Part{})
	entries, err := os.ReadDir(empty)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is written before there is a result")
	if runtime.GOOS == "linux" {
		_, err = Open("/proc", Part{}) // a folder that takes no files, whoever asks
		require.ErrorContains(t, err, "write /proc/points.ndjson: ", "found out before anything is measured")
	}
}

// Each point is of exactly one part.
func TestParts(t *testing.T) {
	for text, want := range map[string]Part{"1/1": {1, 1}, "3/16": {3, 16}} {
		p, err := ParsePart(text)
		require.NoError(t, err)
		require.Equal(t, want, p)
		require.Equal(t, text, p.String())
	}
	for _, wrong := range []string{"", "0/3", "4/3", "1", "1/", "/3", "-1/3", "1/200000", "a/b", "1/3/4"} {
		_, err := ParsePart(wrong)
		require.ErrorContains(t, err, "such as 3/16", wrong)
	}
	for number := range 50 {
		of := 0
		for i := range 7 {
			if (Part{i + 1, 7}).Has(number) {
				of++
			}
		}
		require.Equal(t, 1, of)
		require.True(t, Part{}.Has(number))
	}
}

// After a line that was not written nothing is: it would stand behind a part of a line.
func TestNothingFollowsATornLine(t *testing.T) {
	f, err := Open(t.TempDir(), Part{})
	require.NoError(t, err)
	require.NoError(t, f.Put("a", "a", 1))
	require.NoError(t, f.out.Close())
	torn := f.Put("b", "b", 2)
	require.ErrorContains(t, torn, "results cannot be kept: ")
	f.out = nil // which Put would open anew
	require.Equal(t, torn, f.Put("c", "c", 3))
	_, known := f.Get("b")
	require.False(t, known)
}
