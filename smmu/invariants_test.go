//go:build invariants

package smmu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/smmu"
)

// With the tag, a client that asks twice, or calls Done without an access,
// panics.
func TestClientMistakes(t *testing.T) {
	n, tables, _ := node(t)
	tables.Map(base, 3, page, true)
	a := &smmutest.Answer{Request: smmu.Request{PDID: pdid, Addr: base, Length: 1}}
	again := func() { n.SMMU.Translate(&a.Request) }
	done := func() { n.SMMU.Done(&a.Request) }
	const twice, nothing = "smmu: a request is asked again before its end", "smmu: Done of a request that is not in flight"
	require.PanicsWithValue(t, nothing, done)
	n.Ask(a)
	require.PanicsWithValue(t, twice, again)
	require.PanicsWithValue(t, nothing, done)
	require.NoError(t, n.Engine.Run())
	require.PanicsWithValue(t, twice, again)
	done()
	require.PanicsWithValue(t, nothing, done)
	n.Ask(a) // a hit
	require.PanicsWithValue(t, twice, again)
	done()
	a.PDID++
	n.Ask(a)
	n.Ask(a)
	require.PanicsWithValue(t, nothing, done)
}
