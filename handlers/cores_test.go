package handlers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
)

// What is charged for instructions differs by core, and with it the code that is
// added to a library: the engine must take it on every profile.
func TestLibrariesOnCores(t *testing.T) {
	e, err := hpu.NewEngine("wazero")
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	for _, device := range profile.Names() {
		prof, err := profile.Load(device)
		require.NoError(t, err)
		for _, name := range handlers.Names() {
			l, err := handlers.Builtin(name)
			require.NoError(t, err)
			m, err := hpu.Load(name, l.Wasm, prof.Device())
			require.NoError(t, err, "%s on %s", name, device)
			_, err = e.Compile(m, 4096)
			require.NoError(t, err, "%s on %s", name, device)
		}
	}
}
