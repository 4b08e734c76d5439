package inetscript

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into the scripts")

// TestScripts runs the scripts of testdata. Each tests one rule of an RFC,
// which its first line names. The end must send the segments of the script at
// their times. "go test -rewrite" writes the present outcomes.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Regexp(t, `^# (RFC \d+ §|Linux|lwIP)`, string(text), "which rule?")
			got, err := Run(string(text))
			require.NoError(t, err, file)
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			require.Equal(t, string(text), got)
		})
	}
}
