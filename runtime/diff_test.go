package runtime

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDifferencesOfEqualProfilesAreNone(t *testing.T) {
	for _, name := range ProfileNames() {
		p, err := LoadProfile(name)
		require.NoError(t, err)
		d, err := Differences(p, p)
		require.NoError(t, err)
		require.Empty(t, d)
	}
}

// Whatever two profiles differ in, the differences as overrides make one the other.
func TestDifferencesAreOverrides(t *testing.T) {
	settings := []string{
		"fabric.no_contention=true", "fabric.gap=0ns", "fabric.inject_buffer=8192", "fabric.switch_rate=100Gb/s", "nic.receive=serial",
		"dma.latency=3ns", "hpu.contexts=3", "hpu.clock=1GHz", "hpu.charge=nothing", "host.poll=0ns", "limits.max_eqs=17",
	}
	names := ProfileNames()
	rapid.Check(t, func(t *rapid.T) {
		load := func(label string) *Profile {
			p, err := LoadProfile(rapid.SampledFrom(names).Draw(t, label), rapid.SliceOfDistinct(rapid.SampledFrom(settings), rapid.ID).Draw(t, label)...)
			require.NoError(t, err)
			return p
		}
		from, to := load("from"), load("to")
		list, err := Differences(from, to)
		require.NoError(t, err)
		var overrides []string
		for _, d := range list {
			require.NotEqual(t, d.From, d.To)
			overrides = append(overrides, d.Path+"="+d.To)
		}
		content, err := from.Content()
		require.NoError(t, err)
		made, err := ParseProfile("made", content, overrides...)
		require.NoError(t, err, strings.Join(overrides, " "))
		made.Name, made.Description, made.Origin = to.Name, to.Description, to.Origin
		is, err := made.Content()
		require.NoError(t, err)
		want, err := to.Content()
		require.NoError(t, err)
		require.Equal(t, string(want), string(is), strings.Join(overrides, " "))
	})
}
