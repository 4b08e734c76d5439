package portalscript

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// testdata/reference.csv names existing scripts, each once and with a reason.
// scripts/portals-reference.sh compares the other scripts with the public
// reference implementation.
func TestReferenceListNamesScripts(t *testing.T) {
	scripts := map[string]bool{}
	datadriven.Walk(t, "testdata/conformance", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			for _, a := range d.CmdArgs {
				if a.Key == "name" {
					scripts[path[strings.LastIndexByte(path, '/')+1:]+" "+a.Vals[0]] = true
				}
			}
			return d.Expected
		})
	})
	f, err := os.Open("testdata/reference.csv")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"file", "script", "reason"}, rows[0])
	for _, row := range rows[1:] {
		name := row[0] + " " + row[1]
		require.True(t, scripts[name], "%s is no script, or stands there twice", name)
		delete(scripts, name)
		require.NotEmpty(t, row[2], name)
	}
}
