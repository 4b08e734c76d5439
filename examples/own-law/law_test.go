package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/spin"
)

// A window of 10 packets grows by one when 10 are acknowledged. A mark halves
// it, and a second one does not, until what was in flight is acknowledged.
func TestLaw(t *testing.T) {
	var s state
	f := spin.Flow{Base: 10_000, MTU: 1000, MTUTime: 1000}
	require.Equal(t, spin.Success, law(&f, &s))
	require.EqualValues(t, 10_000, f.Window)
	f.Event, f.Bytes = spin.FlowAcked, 1000
	for range 10 {
		law(&f, &s)
	}
	require.EqualValues(t, 11_000, f.Window)
	f.Marked, f.InFlight = 1, 2000
	law(&f, &s)
	law(&f, &s)
	require.EqualValues(t, 5500, f.Window)
	f.Marked = 0
	law(&f, &s)
	law(&f, &s)
	f.Event = spin.FlowTrimmed
	law(&f, &s)
	require.EqualValues(t, 2750, f.Window)
}
