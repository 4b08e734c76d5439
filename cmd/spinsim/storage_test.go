package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// storage run unpacks a packed trace, and its result can be run again.
func TestStorageRunUnpacks(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "0,0,512,W,0.1\n1,0,512,R,0.2\n"
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile("a.gz", packed.Bytes(), 0o600))
	require.NoError(t, os.MkdirAll("plain", 0o700))
	require.NoError(t, os.WriteFile("plain/a.gz", []byte(text), 0o600))
	rows := func(name string) string { // without the seal: its record has the hash of the file
		csv, _, sealed := bytes.Cut(output(t, "storage", "run", name, "--format", "csv", "--profile", "spin-int"), []byte("# sealed by "))
		require.True(t, sealed)
		return string(csv)
	}
	require.Equal(t, rows("plain/a.gz"), rows("a.gz"))
	require.NoError(t, os.WriteFile("a.json", output(t, "storage", "run", "a.gz", "--format", "json", "--profile", "spin-int"), 0o600))
	require.Contains(t, string(output(t, "rerun", "a.json")), "the same ")

	require.NoError(t, os.WriteFile("a.gz", packed.Bytes()[:20], 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, exitInput, run([]string{"storage", "run", "a.gz"}, &out, &errs))
	require.Regexp(t, `^spinsim: a\.gz: .*EOF\n$`, errs.String())
	require.Empty(t, out.String())
}
