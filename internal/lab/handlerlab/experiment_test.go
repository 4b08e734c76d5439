package handlerlab

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
)

// planned lists the points of a module with values of axes.
func planned(t *testing.T, b *Bench, profiles []string, axes map[string]string) ([]*experiment.Point, error) {
	t.Helper()
	for name := range axes {
		b.Axes = append(b.Axes, name)
	}
	b.Module = handlers.Must("count")
	s, err := experiment.New(b.Experiment())
	require.NoError(t, err)
	s.Profiles = profiles
	for name, list := range axes {
		require.NoError(t, s.Choose(name, list))
	}
	return s.Points()
}

// TestPlanLoadsOnce: points of one device and choice of handlers share the
// loaded module.
func TestPlanLoadsOnce(t *testing.T) {
	var b Bench
	points, err := planned(t, &b, []string{"spin-dis", "spin-int"}, map[string]string{"size": "8..512+8", "completion": "completion,-", "nodes": "1,2"})
	require.NoError(t, err)
	require.Len(t, points, 2*64*2*2)
	loaded := 0
	b.modules.Range(func(_, _ any) bool {
		loaded++
		return true
	})
	require.Equal(t, 2*2, loaded, "two devices, two choices of handlers")
	for _, p := range points {
		require.Positive(t, b.memory(p))
	}
}
