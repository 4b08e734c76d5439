package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/spc"
	"github.com/spinsim/spinsim/profile"
)

// A load is the trace of its model, played as by storage.
func TestLoadsAreTraces(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	for _, m := range spc.Models {
		measured := func(e *experiment.Experiment, v experiment.Values) experiment.Values {
			v["mode"], v["requests"] = experiment.ModeSpin, 20
			p, err := e.At(device, v)
			require.NoError(t, err)
			r, err := e.Measure(context.Background(), p)
			require.NoError(t, err)
			return r.Values
		}
		trace := Storage("a", m.Generate(20, 1))
		require.Equal(t, measured(trace, experiment.Values{}), measured(loads, experiment.Values{"load": m.Name}))
	}
}
