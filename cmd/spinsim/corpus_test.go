package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/provenance"
)

// What an older spinsim made loads, or fails with the change that is needed.
// Each folder of the corpus has files of one version; its file "expected" has
// the commands that read them, with what this version answers: of rerun the
// whole comparison, of others "ok" or the error. Hashes are left out, as they
// change with every build of a module. A changed answer is written by
//
//	go test ./cmd/spinsim -run TestCorpus -rewrite
func TestCorpus(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	folders, err := filepath.Glob(filepath.Join(here, "testdata/corpus/*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	hash := regexp.MustCompile(`[0-9a-f]{12,}`)
	for _, folder := range folders {
		dir := t.TempDir() // what a command adds stays out of the corpus
		require.NoError(t, os.CopyFS(dir, os.DirFS(folder)))
		named := ""
		datadriven.RunTest(t, filepath.Join(folder, "expected"), func(t *testing.T, d *datadriven.TestData) string {
			t.Chdir(dir)
			named += d.Input + "\n"
			var all strings.Builder
			for line := range strings.Lines(d.Input) {
				var out, errs bytes.Buffer
				args := strings.Fields(line)
				status := run(args, &out, &errs)
				switch {
				case args[0] == "rerun":
					fmt.Fprintf(&all, "%s%s", &out, &errs)
					document, err := os.ReadFile(args[1])
					require.NoError(t, err)
					r, err := provenance.Read(document)
					require.NoError(t, err)
					require.NotEqual(t, r.Repeatable(), strings.Contains(errs.String(), "cannot be made again"), "report recommends it: %s", line)
				case status == exitOK:
					all.WriteString("ok\n")
				default:
					fmt.Fprintf(&all, "%s", &errs)
				}
			}
			return hash.ReplaceAllString(all.String(), "HASH")
		})
		require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && name != "expected" && name != "make.sh" {
				require.Contains(t, named, strings.TrimSuffix(name, "/points.ndjson"), "no command reads %s/%s", folder, name)
			}
			return err
		}))
	}
}
