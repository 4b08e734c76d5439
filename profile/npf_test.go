package profile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// eth-npf has the components of NPF'17: a minor fault of 220 us with one page
// and 350 us with 1,024, a major fault of 10 ms more, 12 Gb/s into the server
// and 24 Gb/s out of it.
func TestTheEthernetOfNPF(t *testing.T) {
	p, err := Load("eth-npf")
	require.NoError(t, err)
	fault := func(pages int) sim.Time {
		s := &p.OS
		return s.Interrupt + s.FaultInterrupt + s.Softirq + s.GupCall + s.GupFault + sim.Time(pages)*s.GupAbsent
	}
	require.Equal(t, 220*sim.Microsecond, fault(1))
	require.InDelta(t, 350, fault(1024).Microseconds(), 3, "0.13 us a page is rounded")
	require.Equal(t, 10*sim.Millisecond, p.Storage.ReadLatency)
	rates := map[string]float64{}
	for _, l := range p.Fabric.Topology.Links {
		require.True(t, l.OneWay)
		rates[l.To] = 1e-9 * 8 * 1e6 / l.Rate.Time(1e6).Seconds()
	}
	require.InDelta(t, 12, rates["server"], 1e-6)
	require.InDelta(t, 24, rates["client"], 1e-6)
	require.InDelta(t, 40, 1e-9*8*1e6/p.Fabric.Rate.Time(1e6).Seconds(), 1e-6)
	require.NotEmpty(t, p.Fabric.Buffer, "link flow control is on")
}
