package networks

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// measureCongestion measures a victim on boards of ExaNeSt.
func measureCongestion(t *testing.T, values experiment.Values, set ...string) *experiment.Result {
	device, err := profile.Load("exanest-qfdb", set...)
	require.NoError(t, err)
	p, err := congestion.At(device, values)
	require.NoError(t, err)
	r, err := congestion.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// Absent pages send less into the network than present ones, since each block waits for its pages:
// they slow a victim on the links less. A program on the core that takes their interrupts waits for
// each of them, and on another core it does not.
func TestFaultsTakeACoreRatherThanLinks(t *testing.T) {
	latency := func(victim, partner, beside string, set ...string) sim.Time {
		return measureCongestion(t, experiment.Values{"victim": victim, "partner": partner, "beside": beside, "law": noLaw}, set...).Time(experiment.LatencyColumn)
	}
	for _, victim := range []string{victimRDMA, victimPingPong} {
		none, faults, present := latency(victim, partnerNeighbour, besideNone), latency(victim, partnerNeighbour, besidePIO), latency(victim, partnerNeighbour, incast)
		require.Greater(t, faults, none)
		require.Greater(t, present, faults)
	}
	none := latency(victimPingPong, partnerTarget, besideNone)
	require.Greater(t, latency(victimPingPong, partnerTarget, besidePIO), 5*none)
	require.Less(t, latency(victimPingPong, partnerTarget, besidePIA), latency(victimPingPong, partnerTarget, besidePIO)/2, "with fewer interrupts")
	require.Less(t, latency(victimPingPong, partnerTarget, besidePIO, "os.interrupt_core=3"), none*11/10)
}

// A sender's burst into absent pages faults once for each page at least, and its blocks come again.
func TestBurstsFault(t *testing.T) {
	r := measureCongestion(t, experiment.Values{"victim": victimRDMA, "beside": besidePIO, "senders": 1, "burst": 40960})
	require.Positive(t, r.Values["bursts"])
	require.GreaterOrEqual(t, r.Values["faults"], int64(10))
	require.GreaterOrEqual(t, r.Values["page_faults"], int64(10)*r.Values["bursts"].(int64))
	require.GreaterOrEqual(t, r.Values["resent"], 3*r.Values["bursts"].(int64), "40 KiB are three blocks")
	r = measureCongestion(t, experiment.Values{"victim": victimRDMA, "beside": incast, "senders": 1, "burst": 40960})
	require.Zero(t, r.Values["faults"])
	require.Zero(t, r.Values["resent"])
}

// Background has the share of the link that was asked for, and counts late bursts if the network
// cannot carry it.
func TestBackgroundHasItsLoad(t *testing.T) {
	for _, load := range []float64{0.2, 0.5} {
		r := measureCongestion(t, experiment.Values{"victim": victimRDMA, "beside": besideBackground, "rounds": 1000, "load": load})
		require.Zero(t, r.Values["late"])
		require.InEpsilon(t, load, r.Float("carried"), 0.15)
	}
	r := measureCongestion(t, experiment.Values{"victim": victimRDMA, "beside": besideBackground, "rounds": 300, "load": 1.0})
	require.Greater(t, 10*r.Values["late"].(int64), r.Values["bursts"].(int64), "links of 10 Gb/s lead to one of 19.2")
	require.Len(t, unreached([]*experiment.Result{r}), 1)
}

// A mezzanine's spines pause senders, if the network has pauses in place of credits.
func TestSpinesPause(t *testing.T) {
	device, err := profile.Load("../../docs/profiles/exanest-spine.yaml", "fabric.buffer=0", "fabric.answers_first=true", "fabric.pause_from=3KiB", "fabric.pause_until=2KiB")
	require.NoError(t, err)
	p, err := congestion.At(device, experiment.Values{"victim": victimRDMA, "beside": incast, "nodes": 64, "senders": 16, "rounds": 10, "law": noLaw})
	require.NoError(t, err)
	r, err := congestion.Measure(context.Background(), p)
	require.NoError(t, err)
	require.Positive(t, r.Values["pauses"])
}

// Half of a round trip is rounded once, so the parts of a breakdown add up to it.
func TestPingPongIsDivided(t *testing.T) {
	var out, errs bytes.Buffer
	experiment.RunMain([]*experiment.Experiment{congestion}, provenance.Build{},
		[]string{"--breakdown", "--victim", victimPingPong, "--partner", partnerTarget, "--law", noLaw, "--beside", besideBackground}, &out, &errs)
	require.Empty(t, errs.String())
	require.Contains(t, out.String(), "The parts add up to latency exactly")
}

// A law that the network cannot have is an error of its flag.
func TestLawIsTheFlags(t *testing.T) {
	p, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	_, err = congestion.At(p, experiment.Values{"law": "maxmin"})
	require.ErrorContains(t, err, "--law: maxmin: ")
	require.ErrorContains(t, err, "want fabric.rates")
}
