package pagein_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/profile"
)

// What a kernel cannot read or give is said before anything runs.
func TestPoliciesThatDoNotFit(t *testing.T) {
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	first := func(m *manifest.Manifest) *manifest.Field { // plan.first
		return &m.States[0].Fields[0].Fields[0]
	}
	for _, c := range []struct {
		change func(m *manifest.Manifest)
		wrong  string
	}{
		{func(*manifest.Manifest) {}, ""},
		{func(m *manifest.Manifest) { first(m).Fields[0].Type = manifest.I64 }, "state State: plan.first.start is i64, expected a number without a sign"},
		{func(m *manifest.Manifest) { first(m).Fields[1].Type = manifest.F64 }, "state State: plan.first.end is f64, expected a number without a sign"},
		{func(m *manifest.Manifest) { first(m).Name = "begin" }, "no plan.first.start, plan.first.end in its state"},
		{func(m *manifest.Manifest) { m.Handlers[0].Needs.UserHeader = 65 }, "user header of 65 bytes, expected at most the 64 of its messages"},
	} {
		m, err := manifest.Read(pagein.Library.Wasm)
		require.NoError(t, err)
		c.change(m)
		wasm, err := manifest.Write(pagein.Library.Wasm, m)
		require.NoError(t, err)
		err = pagein.PolicySlot.Check(handlers.New("wrong.wasm", wasm), device.Device())
		if c.wrong == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "module wrong.wasm cannot run in slot pagein.policy: ")
		require.ErrorContains(t, err, c.wrong)
	}
}
