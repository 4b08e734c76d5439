package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const large = 4 << 20

// flow is a message from one rank to another, posted at the beginning of the run.
type flow struct {
	from, to, bytes int
	arrived         sim.Time // the target's event
}

// traffic is flows on a cluster, and programs beside them.
type traffic struct {
	*testing.T
	c     *runtime.Cluster
	flows []*flow
}

// Trace notes the moments of arrival.
func (x *traffic) Trace(_ *portals.NI, r *portals.TraceRecord) {
	if r.What == portals.TraceEvent && r.Event.Type == portals.EventPut {
		x.flows[r.Event.HdrData].arrived = x.c.Engine().Now()
	}
}

func carry(t *testing.T, device string, overrides []string, flows []*flow, beside map[int]func(p *runtime.Proc) error) *profile.Profile {
	prof, err := profile.Load(device, overrides...)
	require.NoError(t, err)
	x := &traffic{T: t, flows: flows}
	x.c, err = runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 4, Explain: x})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.c.Close()) }()
	for rank := range x.c.Nodes() {
		require.NoError(t, x.c.Spawn(rank, "endpoint", x.endpoint))
		if f := beside[rank]; f != nil {
			require.NoError(t, x.c.Spawn(rank, "beside", f))
		}
	}
	require.NoError(t, x.c.Run(context.Background()))
	return prof
}

func (x *traffic) endpoint(p *runtime.Proc) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(64)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(0, eq, 0); err != nil {
		return err
	}
	addr := p.Alloc(large).Addr()
	if _, err := ni.MEAppend(0, &portals.ME{
		Start: addr, Length: large, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut,
	}, portals.PriorityList, 0); err != nil {
		return err
	}
	md, err := ni.Objects().MDBind(&portals.MD{Start: addr, Length: large})
	if err != nil {
		return err
	}
	for i, f := range x.flows {
		if f.from == p.Rank() {
			if err := ni.Put(portals.Put{MD: md, Length: uint64(f.bytes), Target: portals.PhysID(uint32(f.to), 0), HdrData: uint64(i)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// A message of 4 MiB reaches the rate of the wire (LogGP: 1/G) within 1%, and
// takes to the picosecond what LogGP and the bus say.
func TestBandwidthLimit(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		half, whole := &flow{from: 0, to: 1, bytes: large / 2}, &flow{from: 0, to: 1, bytes: large}
		p := carry(t, profile, nil, []*flow{half}, nil)
		carry(t, profile, nil, []*flow{whole}, nil)
		mtu := int64(p.Fabric.MTU)
		for _, f := range []*flow{half, whole} {
			packets := sim.Time(int64(f.bytes) / mtu)
			first := p.NIC.Overhead + 2*p.DMA.Latency + p.DMA.Bandwidth.Time(mtu)
			wire := packets*p.Fabric.Rate.Time(mtu) + 2*p.Fabric.Wire + p.Fabric.Switch
			last := p.NIC.MatchPacket + p.DMA.Bandwidth.Time(mtu) + p.DMA.Latency
			require.Equal(t, first+wire+last, f.arrived)
		}
		ideal := p.Fabric.Rate.Time(large / 2)
		require.InEpsilon(t, float64(ideal), float64(whole.arrived-half.arrived), 0.01)
	})
}

// Two senders into one link get half of it each; a third flow elsewhere does not notice.
func TestLinkIsShared(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		alone, a, b := &flow{from: 0, to: 3, bytes: large}, &flow{from: 0, to: 3, bytes: large}, &flow{from: 1, to: 3, bytes: large}
		bystander, undisturbed := &flow{from: 3, to: 2, bytes: large}, &flow{from: 3, to: 2, bytes: large}
		carry(t, profile, nil, []*flow{alone}, nil)
		carry(t, profile, nil, []*flow{undisturbed}, nil)
		p := carry(t, profile, nil, []*flow{a, b, bystander}, nil)
		wire := float64(p.Fabric.Rate.Time(large))
		require.InEpsilon(t, wire, float64(a.arrived-alone.arrived), 0.01, "the other's bytes pass in between")
		require.InDelta(t, float64(a.arrived), float64(b.arrived), float64(2*p.Fabric.Rate.Time(int64(p.Fabric.MTU))), "fair")
		if p.DMA.FullDuplex {
			require.Equal(t, undisturbed.arrived, bystander.arrived)
		}
	})
}

// On the discrete NIC both directions of the bus have their own bandwidth, on
// the integrated one they share it: with a bus slower than the wire, sending
// and receiving at once takes as long as one of them, or as both.
func TestBusIsShared(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		overrides := []string{"dma.bandwidth=40GB/s", "host.memory_bandwidth=40GB/s"}
		alone := &flow{from: 0, to: 1, bytes: large}
		p := carry(t, profile, overrides, []*flow{alone}, nil)
		bus := float64(p.DMA.Bandwidth.Time(large))
		require.InEpsilon(t, bus, float64(alone.arrived), 0.02, "the bus is the bottleneck")
		// Rank 1 receives from 0 and sends to 2.
		in, out := &flow{from: 0, to: 1, bytes: large}, &flow{from: 1, to: 2, bytes: large}
		carry(t, profile, overrides, []*flow{in, out}, nil)
		last := max(in.arrived, out.arrived)
		if p.DMA.FullDuplex {
			require.InEpsilon(t, float64(alone.arrived), float64(last), 0.001)
		} else {
			require.InEpsilon(t, 2*bus, float64(last), 0.02)
		}
	})
}

// A core that streams through memory slows the DMA of an integrated NIC, and is
// slowed by it; the discrete one has a bus of its own.
func TestMemoryIsShared(t *testing.T) {
	eachProfile(t, func(t *testing.T, profile string) {
		// A core reaches 16 lines of 64 bytes every 51 ns, 20 GB/s, and the
		// wire 50 GB/s; memory carries 60 GB/s.
		overrides := []string{"dma.bandwidth=60GB/s", "host.memory_bandwidth=60GB/s"}
		var took [2]sim.Time
		stream := func(i int) map[int]func(p *runtime.Proc) error {
			return map[int]func(p *runtime.Proc) error{1: func(p *runtime.Proc) error {
				start := p.Now()
				p.Stream(large, 0)
				took[i] = p.Now() - start
				return nil
			}}
		}
		alone, both := &flow{from: 0, to: 1, bytes: large}, &flow{from: 0, to: 1, bytes: large}
		p := carry(t, profile, overrides, []*flow{alone}, nil)
		carry(t, profile, overrides, nil, stream(0))
		carry(t, profile, overrides, []*flow{both}, stream(1))
		if !p.DMA.SharedMemory {
			require.Equal(t, alone.arrived, both.arrived)
			require.Equal(t, took[0], took[1])
			return
		}
		// While both want memory it is busy without a pause: the message takes
		// what is over when the core has had its share.
		// of the stream, once the core was alone again
		rest := float64(took[1]-both.arrived) / float64(took[0]) * large
		share := large - rest
		require.InEpsilon(t, float64(p.DMA.Bandwidth.Time(int64(large+share))), float64(both.arrived), 0.02)
		require.Greater(t, both.arrived, alone.arrived)
		require.Greater(t, float64(took[1]), 1.1*float64(took[0]))
	})
}

// Small packets are limited by the gap g, not by their bytes (sPIN'17 §4: 150 M messages/s).
func TestGapLimitsSmallPackets(t *testing.T) {
	const n = 100
	r := conduct(t, setup{
		initiator: func(p *runtime.Proc, md portals.Handle, _ *rig) error {
			ni := p.NI()
			ct, err := ni.Objects().CTAlloc()
			if err != nil {
				return err
			}
			for i := range uint64(n) {
				err := ni.Objects().Triggered(portals.Put{MD: md, Length: 8, Target: portals.PhysID(1, 0), HdrData: i}, ct, 1)
				if err != nil {
					return err
				}
			}
			return ni.Objects().CTInc(ct, portals.CTEvent{Success: 1})
		},
	})
	puts := all(r.targets, portals.EventPut)
	require.Len(t, puts, n)
	require.Equal(t, (n-1)*r.prof.Fabric.Gap, puts[n-1].at-puts[0].at)
	require.Greater(t, r.prof.Fabric.Gap, r.prof.Fabric.Rate.Time(8))
}
