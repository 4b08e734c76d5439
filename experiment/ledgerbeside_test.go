package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// A claim gets the number at a result, and that of the point beside it, in µs. A
// point that was not measured is an error and not a number.
func TestMeasuredBeside(t *testing.T) {
	e := definition()
	e.Run = func(_ context.Context, p *Point) (Values, error) {
		n := sim.Time(p.Int("size")) * sim.Microsecond
		if p.Text("mode") == "b" {
			n *= 10
		}
		return Values{"latency": n}, nil
	}
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	m := &Measured{experiment: e, at: map[string]*Result{}}
	for _, mode := range []string{"a", "b"} {
		p, err := e.At(device, Values{"mode": mode, "size": 8})
		require.NoError(t, err)
		r, err := e.Measure(t.Context(), p)
		require.NoError(t, err)
		m.Results = append(m.Results, r)
		m.at[p.key(-1, nil)] = r
	}
	require.InDelta(t, 8, m.Of(m.Results[0], "latency"), 1e-9)
	require.InDelta(t, 80, m.Beside(m.Results[0], "latency", "mode=b"), 1e-9)
	require.InDelta(t, 8, m.Beside(m.Results[1], "latency", "mode=a"), 1e-9)
	require.NoError(t, m.err)
	require.Zero(t, m.Beside(m.Results[0], "latency", "size=16"))
	require.ErrorContains(t, m.err, "no point with size=16 beside spin-int")
}

func TestConvertedNumbersHaveNoNoise(t *testing.T) {
	require.Equal(t, 0.036, withoutNoise(3.6/100))
	require.Equal(t, 50.0, withoutNoise(50))
}
