package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Everything wrong with a profile is said at once, whether it is a name, the form of a value, its range, or an override; and nothing that
// only follows from something else.
func TestAllErrorsOfAProfile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(name, []byte(`base: spin-int
hpu:
  coers: 4
  contexts: many
  cores: 0
fabric:
  wire: 3000000s
  rate: [1]
host: 5
nic:
  overhead: 1ns
  overhead: 2ns
`), 0o666))
	_, err := LoadProfile(name, "hpu.clock=fast", "limits.max_mds=0", "limit.max_mds=5", "dma.latency=-1ns")
	require.Error(t, err)
	got := strings.Split(strings.ReplaceAll(err.Error(), name, "p.yaml"), "\n")
	for i, prefix := range []string{
		"profile p.yaml:3: hpu.coers: unknown field, expected one of clock, ",
		`profile p.yaml:4: hpu.contexts: "many", expected a whole number`,
		"profile p.yaml:8: fabric.rate: ",
		`profile p.yaml:9: host: "5", expected fields with values`,
		"profile p.yaml:12: nic.overhead: given twice",
		`profile p.yaml: override hpu.clock=fast:1: hpu.clock: frequency "fast": expected`,
		`profile p.yaml: override "limit.max_mds=5": limit.max_mds: no field limit, expected one of`,
		"profile p.yaml: fabric.wire: want 1 ps to 1 s, got 3000000 s",
		"profile p.yaml: dma.latency: -1 ns, expected 0 s to 1 s",
		"profile p.yaml: limits.max_mds: 0, expected 1 to",
		"profile p.yaml: hpu.cores: 0, expected 1 to 4096",
	} {
		require.Greater(t, len(got), i, got)
		require.True(t, strings.HasPrefix(got[i], prefix), "%s\nexpected\n%s", got[i], prefix)
	}
	require.Len(t, got, 11, strings.Join(got, "\n"))
}
