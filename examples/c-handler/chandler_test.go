package chandler

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlerlab"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// The handler in C does what the one in Go does, on either device.
func TestSameAsGo(t *testing.T) {
	const packets = "../first-handler/packets.txt"
	text, err := os.ReadFile(packets)
	require.NoError(t, err)
	messages, err := handlerlab.ParsePackets(packets, text)
	require.NoError(t, err)
	format, err := handlerlab.ParseFormat("u64,u64,u32,u32")
	require.NoError(t, err)
	state, err := handlerlab.ParseState("0,0,7", format)
	require.NoError(t, err)
	for _, name := range []string{"spin-dis", "spin-int"} {
		device, err := profile.Load(name)
		require.NoError(t, err)
		report, err := handlerlab.Run(t.Context(), &handlerlab.Config{
			Module: handlerlab.Module{Name: "filter.wasm", Wasm: Module}, Profile: device,
			Messages: messages, State: state, Host: make([]byte, 64<<10), Limits: sim.Limits{Until: sim.Millisecond},
		})
		require.NoError(t, err)
		require.NoError(t, report.Err())
		require.NoError(t, handlerlab.CompareFile("../first-handler/expected.txt", report, handlerlab.Text{Format: format, Plain: true}))
	}
}
