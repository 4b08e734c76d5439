package checkpoint

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/seal"
)

func open(t *testing.T, path string, part Part) *Folder {
	t.Helper()
	f, err := Open(path, part)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// A result is there for the next program that opens the folder, also after a
// program was killed while writing, and for programs that write at the same
// time.
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
	require.Regexp(t, `"d".*\n\{"key":"e","point":"point e","result":5,"complete":true,"sha256":"[0-9a-f]{64}"\}\n$`, string(text))
	text, err = os.ReadFile(filepath.Join(path, "part-2-of-3.ndjson"))
	require.NoError(t, err)
	require.Equal(t, kepts(t, `{"key":"b","point":"point b","result":2}`), string(text))
}

// Others counts results that were never requested.
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

// kepts returns lines as Put writes them.
func kepts(t *testing.T, objects ...string) (lines string) {
	for _, o := range objects {
		text, err := seal.Object([]byte(o), "")
		require.NoError(t, err)
		lines += string(text) + "\n"
	}
	return lines
}

// A stored result comes back unchanged or not at all, whichever byte of its
// file is changed, missing or doubled. Either the folder cannot be opened, or
// the result is measured again.
func TestEveryEditIsNoticed(t *testing.T) {
	was := kepts(t, `{"key":"a1","point":"pingpong, 8 B","result":{"latency":{"ps":"464060"},"mode":"µs"}}`, `{"key":"b","point":"","result":[1,2.5]}`)
	original := map[string]string{"a1": `{"latency":{"ps":"464060"},"mode":"µs"}`, "b": `[1,2.5]`}
	check := func(is string) {
		f := &Folder{known: make(map[string]kept), used: make(map[string]bool)}
		if err := f.lines(strings.NewReader(is), "x.ndjson"); err != nil { // Open returns this error
			require.ErrorContains(t, err, "x.ndjson:")
			return
		}
		for key, want := range original {
			if got, there := f.Get(key); there {
				require.Equal(t, want, string(got), is)
			}
		}
		require.Zero(t, f.Others(), is)
	}
	check(was)
	for i := range len(was) {
		for _, b := range "0189 \n\":,{}x" {
			check(was[:i] + string(b) + was[i+1:])
		}
		check(was[:i] + was[i+1:])
		check(was[:i+1] + was[i:])
		check(was[:i])
	}
}

// Two lines of one key must have the same result. Otherwise the error names
// both.
func TestTwoResultsOfOneKey(t *testing.T) {
	for _, tc := range []struct{ first, second, want string }{
		{`{"key":"a","point":"p","result":1}`, `{"key":"a","point":"p","result":1}`, ""},
		{`{"key":"a","point":"p","result":1}`, `{"key":"a","point":"p","result":2}`, "/y.ndjson:1: p: another result than in "},
	} {
		path := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(path, "x.ndjson"), []byte(kepts(t, tc.first)), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(path, "y.ndjson"), []byte(kepts(t, tc.second)), 0o600))
		_, err := Open(path, Part{})
		if tc.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, tc.want+filepath.Join(path, "x.ndjson")+":1, made from the same: one is wrong; remove both lines, and it is measured again")
	}
}

// The error names a line in a foreign format.
func TestWrongFolders(t *testing.T) {
	for text, where := range map[string]string{
		"{\n": ":1: no result", kepts(t, `{"key":"a","point":"","result":1}`) + "x\n": ":2: no result", "{\"key\":\"a\"}\n": ":1: no result",
		kepts(t, `{"key":"a","result":1,"more":2}`):                                      ":1: no result",
		`{"key":"a","point":"p","result":1}` + "\n":                                      ":1: p: no digest (sha256): an older spinsim kept it, or it was changed; name another folder, or remove the file",
		strings.Replace(kepts(t, `{"key":"a","point":"p","result":1}`), ":1,", ":2,", 1): ":1: p: changed after it was written: the digest of its content is ",
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
		_, err = Open("/proc", Part{}) // a folder that accepts no files from any user
		require.ErrorContains(t, err, "write /proc/points.ndjson: ", "found out before anything is measured")
	}
}

// Each point belongs to exactly one part.
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

// After a failed write nothing is written: it would follow an incomplete line.
func TestNothingFollowsATornLine(t *testing.T) {
	f, err := Open(t.TempDir(), Part{})
	require.NoError(t, err)
	require.NoError(t, f.Put("a", "a", 1))
	require.NoError(t, f.out.Close())
	torn := f.Put("b", "b", 2)
	require.ErrorContains(t, torn, "results cannot be kept: ")
	f.out = nil // otherwise Put would open it again
	require.Equal(t, torn, f.Put("c", "c", 3))
	_, known := f.Get("b")
	require.False(t, known)
}
