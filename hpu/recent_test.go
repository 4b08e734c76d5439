package hpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A module that was loaded lately is not loaded again, whoever has changed the
// values of the device since: it is another one with another name, cost, code or
// observer.
func TestRecentModules(t *testing.T) {
	spec := testSpec()
	load := func(name string, spec *Spec) *Module {
		m, err := Load(name, handlersWasm, spec)
		require.NoError(t, err)
		return m
	}
	first := load("recent", spec)
	require.Same(t, first, load("recent", testSpec()))
	require.NotSame(t, first, load("recent too", spec))
	spec.Costs.Imports["dma_wait"]++
	dearer := load("recent", spec)
	require.NotSame(t, first, dearer)
	require.NotEqual(t, first.binary, dearer.binary)
	watched := testSpec()
	watched.Watch.Null = true
	seen := load("recent", watched)
	require.NotSame(t, seen, load("recent", watched))
	for i := range recents {
		load(fmt.Sprint("another ", i), testSpec())
	}
	again := load("recent", testSpec())
	require.NotSame(t, first, again, "only so many are kept")
	require.Equal(t, first.binary, again.binary)
	require.LessOrEqual(t, len(recent.list), recents)
}
