package handlers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/runtime"
)

// Firmware has numbers of a library's state in place of its defaults, but not
// of what a program gives. A number that the library does not have, and a state
// that hides its numbers, are refused with the field of the profile.
func TestStateOfFirmware(t *testing.T) {
	install := func(field string, state any) (got bcast.State, err error) {
		onNode(t, func(p *runtime.Proc) {
			m := load(t, p, handlers.Must("bcast"))
			var in *handlers.Installed
			if in, err = m.Install(p, handlers.Options{Payload: bcast.StreamPayload, Shared: true, State: state}); err == nil {
				err = in.Read(&got)
			}
		}, "pools.r5={kind: firmware, cores: 1, contexts: 1, invocation: 3us, state: {"+field+": 2}}", "serve.bcast={header: r5}")
		return got, err
	}
	got, err := install("root", nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, got.Root)
	got, err = install("root", map[string]any{"root": 1})
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Root)
	_, err = install("roof", nil)
	require.EqualError(t, err, "module bcast: pools.r5.state.roof: its state has no such number")
	_, err = install("root", []byte{1})
	require.EqualError(t, err, "module bcast: pools.r5.state: the program gives the state in another form")
}
