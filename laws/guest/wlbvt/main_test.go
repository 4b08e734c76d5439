package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/spin"
)

// The tenant that has had fewer HPUs for its weight goes first, and none has more
// handlers under way than its part: 3 of 8 by a weight of 1 in 3, rounded up.
func TestKey(t *testing.T) {
	var state laws.State
	ask := func(o spin.Tenant) uint64 {
		o.Others, o.HPUs = 3, 8
		require.Equal(t, spin.Success, key(&o, &state))
		return o.Key
	}
	light := spin.Tenant{Weight: 1, Had: 1000, Wanted: 2000}
	require.EqualValues(t, 500_000_000, ask(light))
	require.EqualValues(t, 250_000_000, ask(spin.Tenant{Weight: 2, Had: 1000, Wanted: 2000}))
	require.Zero(t, ask(spin.Tenant{Weight: 1}), "who has wanted nothing so far")
	light.Handlers = 2
	require.Less(t, ask(light), uint64(spin.NotNow))
	light.Handlers = 3
	require.Equal(t, uint64(spin.NotNow), ask(light))
}
