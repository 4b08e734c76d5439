package nic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// slowPort is a wire that takes a nanosecond a byte.
type slowPort struct {
	*linkAlone
	free sim.Time
}

func (p *slowPort) Send(k fabric.Packet) {
	require.Positive(p.t, p.credits[k.Class], "the network has no room")
	start := max(p.l.now(), p.free)
	p.free = start + sim.Time(k.Bytes)*sim.Nanosecond
	p.sent, p.at = append(p.sent, k), append(p.at, start)
	if p.back != nil {
		p.credits[k.Class]--
		p.l.post(start+p.back(k.Class), kindCredit, uint64(k.Class), nil)
	}
	require.True(p.t, k.Notify)
	p.l.engine.Post(start, p.l.id, p.l.id, fabric.KindSent, 0, uint64(k.Seq), k.Ref)
}

// newEgressAlone is a link whose tenants 1, 2 and so on have these weights; arbiter
// fifo: packets go in the order in which they come.
func newEgressAlone(t *rapid.T, spec Spec, arbiter string, weights ...int) *linkAlone {
	x := newLinkAlone(t, spec, true)
	list := make([]tenant, len(weights)+1)
	list[0].Weight = 1
	for i, w := range weights {
		list[i+1].Weight = w
	}
	x.l.turns = newEgressTurns(&HPUSpec{Arbiter: arbiter}, &spec, &tenants{pick: pickers[arbiter], list: list})
	x.l.fabric.Rate = sim.NewRate(1000, 1)
	if x.l.turns != nil {
		x.l.port = &slowPort{linkAlone: x}
	}
	return x
}

// leaves lets a packet of a tenant come to the link at a time.
func (x *linkAlone) leaves(at sim.Time, tenant int, d departure) {
	if d.ref == nil {
		d.ref = &Frame{Packets: 2, MTU: 256, Source: int32(tenant)}
	}
	d.tenant = uint16(tenant)
	x.l.post(at, kindDepart, 0, &d)
}

// A packet waits for the one on the wire and for one that has been chosen, not for all
// that another tenant has sent before, on the wire and on the path to the own node.
func TestPacketsOfTenantsTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arbiter := rapid.SampledFrom(Arbiters()[1:]).Draw(t, "arbiter")
		target := rapid.Int32Range(0, 1).Draw(t, "target")
		x := newEgressAlone(t, Spec{EgressPackets: maxEgress, Loopback: 50}, arbiter, 1, 1)
		for range 100 {
			x.leaves(0, 1, departure{target: target, bytes: 64})
		}
		comes := sim.Time(rapid.IntRange(0, 5000).Draw(t, "ns")) * sim.Nanosecond
		x.leaves(comes, 2, departure{target: target, bytes: 64})
		came := sim.Time(-1)
		x.l.next = cameFrom(func(f *Frame) {
			if f.Source == 2 {
				came = x.l.now() - 50
			}
		})
		require.NoError(t, x.l.engine.Run())
		for i, p := range x.sent {
			if p.Ref.(*Frame).Source == 2 {
				came = x.at[i] + 64*sim.Nanosecond
			}
		}
		require.LessOrEqual(t, came-comes, 3*64*sim.Nanosecond)
		require.Positive(t, came)
	})
}

// cameFrom is told of packets that have come.
type cameFrom func(f *Frame)

func (c cameFrom) packetArrived(f *Frame, _ int, _ bool) { c(f) }
func (c cameFrom) abandoned(int32)                       {}

// Tenants that always have packets send bytes by their weights, whatever the length of
// their packets.
func TestEgressIsByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 5), 2, 4).Draw(t, "weights")
		x := newEgressAlone(t, Spec{EgressPackets: maxEgress}, WFQ, weights...)
		all, bytes := 0, make([]int64, len(weights))
		for i, w := range weights {
			all += w
			size := rapid.Int32Range(1, 256).Draw(t, "bytes")
			for range 40_000 / int(size) {
				x.leaves(0, i+1, departure{target: 1, bytes: size})
			}
		}
		const until = 30 * sim.Microsecond // nobody has sent all
		require.NoError(t, x.l.engine.RunUntil(until))
		for _, p := range x.sent {
			bytes[p.Ref.(*Frame).Source-1] += int64(p.Bytes)
		}
		for i, w := range weights {
			require.InDelta(t, float64(w)/float64(all), float64(bytes[i])/float64(until/sim.Nanosecond), 0.05)
		}
	})
}

// Everything leaves once and in the order of its tenant and class, while the network
// pushes back, and the places of handlers' packets are given back.
func TestTurnsOfPacketsLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newEgressAlone(t, Spec{EgressPackets: 9, Loopback: 50}, WFQ, 2, 1)
		pause := sim.Time(rapid.IntRange(0, 900).Draw(t, "back"))
		x.credits = [fabric.Classes]int{rapid.IntRange(1, 3).Draw(t, "requests"), rapid.IntRange(1, 3).Draw(t, "answers")}
		x.back = func(fabric.Class) sim.Time { return pause * sim.Nanosecond }
		type line struct {
			tenant uint16
			class  fabric.Class
		}
		order, own, device := map[line][]uint64{}, 0, 0
		n := rapid.IntRange(1, 60).Draw(t, "packets")
		for i := range n {
			kind := rapid.SampledFrom([]portals.OpKind{portals.OpPut, portals.OpReply}).Draw(t, "kind")
			f := &Frame{Header: portals.Header{Kind: kind}, Packets: 2, MTU: 64, Number: uint64(i) + 1}
			d := departure{ref: f, target: rapid.Int32Range(0, 2).Draw(t, "target"), bytes: rapid.Int32Range(0, 64).Draw(t, "bytes"), class: x.l.classOf(kind), device: rapid.Bool().Draw(t, "from HPU memory")}
			tenant := rapid.IntRange(0, 2).Draw(t, "tenant")
			if f.Source = int32(tenant); d.target == 0 {
				own++
			} else {
				k := line{uint16(tenant), d.class}
				order[k] = append(order[k], f.Number)
			}
			if d.device {
				device++
			}
			x.leaves(0, tenant, d)
		}
		require.NoError(t, x.l.engine.Run())
		got := map[line][]uint64{}
		for _, p := range x.sent {
			f := p.Ref.(*Frame)
			k := line{uint16(f.Source), p.Class}
			got[k] = append(got[k], f.Number)
		}
		require.Equal(t, order, got)
		require.Len(t, x.came, own)
		require.Equal(t, device, x.spaces)
		require.Zero(t, x.l.turns.waits())
		for i := range x.l.turns.lines {
			require.Zero(t, x.l.turns.lines[i].device)
			require.True(t, x.l.egressRoom(uint16(i), 2), "a third of nic.egress_packets each")
			require.False(t, x.l.egressRoom(uint16(i), 3))
		}
	})
}
