package networks

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/provenance"
)

// A module needs the name of its slot, for a rate law is no path choice. Without
// one no module is named, neither in the record nor as served by processors.
func TestModulesHaveTheirSlots(t *testing.T) {
	run := func(args ...string) string {
		var out, errs bytes.Buffer
		experiment.RunMain([]*experiment.Experiment{traffic}, provenance.Build{}, append([]string{"--nodes", "8", "--senders", "4", "--size", "4KiB", "--law", "nscc"}, args...), &out, &errs)
		return out.String() + errs.String()
	}
	require.Contains(t, run("--handler", "../../laws/nscc.wasm"), "traffic has several slots, expected SLOT=FILE.wasm with one of transport.law, transport.way")
	require.NotContains(t, run(), "handler")
	require.NotContains(t, run("--profile", "exanest", "--set", "transport.kind=reliable"), "handlers")
	require.Contains(t, run("--handler", "transport.way=../../laws/recycle.wasm"), "handler recycle.wasm in transport.way")
	require.Contains(t, run("--handler", "transport.law=../../laws/recycle.wasm", "--set", "transport.law_cycles=1"), "law handler of recycle.wasm")
}
