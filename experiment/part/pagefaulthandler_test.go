package part

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// The library's module decides as the published policy in Go: all counts are
// the same, and each fault takes the module's cycles more.
func TestPolicyOfAModule(t *testing.T) {
	for _, side := range []string{SideDestination, SideSource, sideBoth} {
		for _, by := range []string{byKernel, byTouch, byKernelOnly} {
			at := func(policy string, overrides ...string) *experiment.Result {
				return faulted(t, experiment.Values{"policy": policy, "size": 64 << 10, "side": side, "by": by, "timeout": "20ms"}, overrides...)
			}
			published, fast, slow := at(policyPIO), at(policyHandler, "os.handler_clock=1000GHz"), at(policyHandler, "os.handler_clock=1MHz")
			for _, count := range []string{"faults", "paged_in", "entries", "messages", "requests"} {
				require.Equal(t, published.Values[count], fast.Values[count], "%s, %s: %s", side, by, count)
			}
			between := fast.Time(experiment.LatencyColumn) - published.Time(experiment.LatencyColumn)
			require.LessOrEqual(t, between, 100*sim.Nanosecond, "%s, %s", side, by)
			require.GreaterOrEqual(t, between, sim.Time(0), "%s, %s", side, by)
			if side != SideDestination { // a source waits for the time-out
				continue
			}
			require.Greater(t, slow.Time(experiment.LatencyColumn), fast.Time(experiment.LatencyColumn)+100*sim.Microsecond, "%s, %s", side, by)
		}
	}
}

// A policy that breaks a rule of its slot ends the run, and the error names the
// rule.
func TestWrongPolicies(t *testing.T) {
	for _, c := range []struct {
		body  string
		imp   string // an import without parameters
		wrong string
	}{
		{body: "\x41\x06", wrong: "plan.first is 0x0 to 0x0, expected to include the page, 0x"},
		{body: "\x41\x00", wrong: "handler policy of module wrong.wasm returned 0, expected PROCEED, 6"},
		{body: "\x41\x7f", wrong: "returned -1, expected PROCEED"},
		{body: "\x00", wrong: "kernel of rank 1: module wrong.wasm, function policy, offset 0x"},
		{body: "\x03\x40\x0c\x00\x0b\x41\x06", wrong: "budget"},
		{body: "\x41\x06", imp: "yield", wrong: "cannot run in slot pagein.policy: imports yield: handlers of a kernel have no device, expected only now, log"},
	} {
		device, err := profile.Load("exanest-qfdb")
		require.NoError(t, err)
		p, err := pagefault.At(device, experiment.Values{"policy": policyHandler, "size": 4096})
		require.NoError(t, err)
		p.Handlers = map[string]*handlers.Library{pagein.PolicySlot.Name: handlers.New("wrong.wasm", policyModule(t, c.body, c.imp))}
		_, err = pagefault.Measure(t.Context(), p)
		require.ErrorContains(t, err, c.wrong)
		require.ErrorContains(t, err, "pagein.policy, whose rules are:", "%q", c.body)
	}
}

// policyModule is a module with a policy of that body, and perhaps an import.
func policyModule(t *testing.T, body, imported string) []byte {
	t.Helper()
	section := func(id byte, content string) string {
		return string(append(binary.AppendUvarint([]byte{id}, uint64(len(content))), content...))
	}
	imports, first := "", "\x00" // of the functions that the module defines
	if imported != "" {
		imports, first = section(2, "\x01\x04spin"+string(byte(len(imported)))+imported+"\x00\x01"), "\x01"
	}
	code := "\x00" + body + "\x0b"
	wasm, err := manifest.Write([]byte("\x00asm\x01\x00\x00\x00"+
		section(1, "\x02\x60\x02\x7f\x7f\x01\x7f\x60\x00\x00")+imports+section(3, "\x01\x00")+section(5, "\x01\x00\x01")+
		section(7, "\x02\x06memory\x02\x00\x06policy\x00"+first)+section(10, "\x01"+string(byte(len(code)))+code)), pagein.Library.Manifest())
	require.NoError(t, err)
	return wasm
}
