package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlerlab"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/profile"
)

// Advice on handlers of the library work is what compare hpus measures of handlers that take as long: with the HPUs that are advised they hold line rate, with one less they
// do not, and with either they handle as many packets as the advice simulates, within two percent.
func TestAdviceIsWhatHPUsMeasures(t *testing.T) {
	const size = 2048
	p, err := profile.Load("spin-int", fmt.Sprint("fabric.mtu=", size))
	require.NoError(t, err)
	cfg := &handlerlab.Config{Module: handlers.Must("work"), Profile: p, Nodes: 1}
	require.NoError(t, cfg.SetState("iterations=60"))
	a, err := handlerlab.Advise(context.Background(), cfg, make([]byte, size))
	require.NoError(t, err)
	require.Greater(t, a.Advised, 3)
	e, err := experiment.Find("hpus")
	require.NoError(t, err)
	for _, hpus := range []int{a.Advised, a.Advised - 1} {
		at, err := e.At(p, experiment.Values{"handler-time": a.Computes, "hpus": hpus, "size": size})
		require.NoError(t, err)
		r, err := e.Measure(context.Background(), at)
		require.NoError(t, err)
		require.InEpsilon(t, float64(a.Computes), float64(r.Time("handler")), 0.02)
		share := r.Float("rate") * a.Line.Microseconds()
		require.Equal(t, hpus == a.Advised, share >= handlerlab.LineRate, "%d HPUs reach %.3f", hpus, share)
		if hpus == a.Advised {
			require.InEpsilon(t, share, a.AtAdvised.Share, 0.02)
		}
	}
}
