package exampletest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// SameAsGo requires that a module with the filter of examples/first-handler
// behaves like the one in Go, on either device.
func SameAsGo(t *testing.T, module []byte) {
	t.Helper()
	const packets = "../first-handler/packets.txt"
	text, err := os.ReadFile(packets)
	require.NoError(t, err)
	messages, err := handlerlab.ParsePackets(packets, text)
	require.NoError(t, err)
	for _, name := range []string{"spin-dis", "spin-int"} {
		device, err := profile.Load(name)
		require.NoError(t, err)
		run := &handlerlab.Config{
			Module: handlers.New("filter.wasm", module), Profile: device,
			Messages: messages, Host: make([]byte, 64<<10), Watched: runtime.Config{Limits: sim.Limits{Until: sim.Millisecond}},
		}
		require.NoError(t, run.SetState("wanted=7"))
		report, err := handlerlab.Run(t.Context(), run)
		require.NoError(t, err)
		require.NoError(t, report.Err())
		require.NoError(t, handlerlab.CompareFile("../first-handler/expected.txt", report, handlerlab.Text{Plain: true}))
	}
}
