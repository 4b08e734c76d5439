package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// sendHeld sends a node's held packets of a class while its port is ready.
func (s *sink) sendHeld(node int, c Class) {
	queue := &s.held[node][c]
	for len(*queue) > 0 && s.ports[node].Ready(c) {
		p := (*queue)[0]
		*queue = (*queue)[1:]
		s.ports[node].Send(p)
	}
}

// bounded returns a Spec with buffers of n packets of 4096 B.
func bounded(n int64) Spec {
	spec := spinDis()
	spec.Buffer = Buffers{n * 4096}
	return spec
}

// 64 nodes send 20 packets each to one node. None is lost, no buffer overflows,
// and the receiver's link is busy 99% of the time from the first packet on. A
// packet of 81.9 ns leaves room for the next when its credit is back: 81.92 +
// 33.4 + 50 + 33.4 ns, so three packets fill the link.
func TestIncastOverCredits(t *testing.T) {
	for _, n := range []int64{4, 16} {
		const senders, each = 64, 20
		s := build(t, bounded(n), senders+1, nil)
		s.held = make([][Classes][]Packet, senders+1)
		for i := range senders {
			for k := range uint32(each) {
				s.held[i+1][Requests] = append(s.held[i+1][Requests], Packet{Src: int32(i + 1), Dst: 0, Bytes: 4096, Seq: k})
			}
			s.sendHeld(i+1, Requests)
		}
		got := s.run(t)
		checkFlood(t, s, bounded(n), senders*each)
		span := got[len(got)-1].at - got[0].at
		require.InEpsilon(t, float64(senders*each-1)*81920, float64(span), 0.01)
	}
}

// One packet fits: the next leaves when the credit of the one before is back.
// The head reaches the output port after wire + switch; the tail leaves the
// switch a packet's time later, and the credit takes the wire back.
func TestCreditsRoundTrip(t *testing.T) {
	s := build(t, bounded(1), 2, nil)
	s.held = make([][Classes][]Packet, 2)
	for i := range uint32(5) {
		s.held[0][Requests] = append(s.held[0][Requests], Packet{Src: 0, Dst: 1, Bytes: 4096, Seq: i})
	}
	s.sendHeld(0, Requests)
	const turn = 33400 + 50000 + 81920 + 33400
	for i, a := range s.run(t) {
		require.Equal(t, s.f.Latency(0, 1, 4096)+sim.Time(i)*turn, a.at)
	}
	require.Equal(t, []sim.Time{turn, 2 * turn, 3 * turn, 4 * turn}, s.ready)
	require.Equal(t, int64(4096), s.f.Links()[0].MaxBuffer)
}

// A receiver that takes nothing stops its senders, back to the source. Of one
// class, only the packets that fit the buffers on the path leave. The other
// class goes on. Everything arrives once the receiver takes packets again.
func TestReceiverPushesBack(t *testing.T) {
	s := build(t, bounded(2), 2, nil)
	s.keep = true
	s.held = make([][Classes][]Packet, 2)
	for i := range uint32(10) {
		s.held[0][Requests] = append(s.held[0][Requests], Packet{Src: 0, Dst: 1, Bytes: 4096, Seq: i})
	}
	s.sendHeld(0, Requests)
	require.Len(t, s.run(t), 2, "the receiver's buffer is full")
	require.Len(t, s.held[0][Requests], 6, "and so is that of the switch")
	require.False(t, s.ports[0].Ready(Requests))
	require.True(t, s.ports[0].Ready(Answers))
	s.ports[0].Send(Packet{Src: 0, Dst: 1, Bytes: 4096, Class: Answers})
	require.Len(t, s.run(t), 3)
	s.keep = false
	for _, a := range s.got {
		s.ports[1].Release(a.p)
	}
	require.Len(t, s.run(t), 11)
	checkFlood(t, s, bounded(2), 11)
	require.Panics(t, func() {
		s.ports[1].Release(s.got[0].p)
		s.run(t)
	}, "released twice")
}

// Two packets of different classes wait for the node's own buffer, and each
// gets its KindReady when there is room.
func TestBothClassesWaitForTheInjectBuffer(t *testing.T) {
	spec := bounded(16)
	spec.InjectBuffer = 4096 + 64
	s := build(t, spec, 2, nil)
	s.held = make([][Classes][]Packet, 2)
	for c := range Class(Classes) {
		for i := range uint32(5) {
			s.held[0][c] = append(s.held[0][c], Packet{Src: 0, Dst: 1, Bytes: 4096, Seq: i, Class: c})
		}
	}
	for c := range Class(Classes) {
		s.sendHeld(0, c)
	}
	require.Len(t, s.run(t), 10)
}

// With bounded buffers a packet on its way over a switch costs two events: its
// own and the event that returns the credit.
func TestEventsOfACreditHop(t *testing.T) {
	for _, dims := range [][]int{{2}, {9}, {4, 4}} {
		spec := torusSpec(dims...)
		spec.Buffer = Buffers{64 * 4096}
		s := build(t, spec, newTorus(dims, 1).count, nil)
		hops := 0
		for dst := range s.f.Nodes() {
			hops += len(s.f.Path(0, dst))
			s.ports[0].Send(Packet{Src: 0, Dst: int32(dst), Bytes: 4096})
		}
		s.run(t)
		require.LessOrEqual(t, s.eng.Handled(), uint64(2*hops))
	}
}

func TestCreditsAllocateNothing(t *testing.T) {
	for _, spec := range []Spec{bounded(3), torusSpec(4, 4, 3)} {
		spec.Buffer = Buffers{3 * 4096}
		p := newPump(t, spec, 40)
		p.run(t, 50_000) // until the queues have grown
		require.Zero(t, testing.AllocsPerRun(20, func() { p.run(t, 1000) }), spec.Kind)
	}
	boards := newPumpOf(t, exanestSpec(4, 4, 2), 128, 256, sim.Microsecond)
	boards.run(t, 50_000)
	require.Zero(t, testing.AllocsPerRun(20, func() { boards.run(t, 1000) }), "boards")
	spec := torusSpec(4, 4, 3)
	p := newPump(t, spec, 40)
	require.Zero(t, testing.AllocsPerRun(20, func() { p.run(t, 1000) }), "torus without bounds")
}

// Buffers that are never full change nothing: packets and times are the same
// as without bounds.
func TestLargeBuffersAreAsIfUnbounded(t *testing.T) {
	for _, spec := range []Spec{spinDis(), torusSpec(5, 2)} {
		var times [2][]arrival
		for i, b := range []Buffers{nil, {1 << 30}} {
			spec.Buffer = b
			s := build(t, spec, 10, nil)
			for k := range uint32(30) {
				for src := range int32(10) {
					s.inject(sim.Time(k)*30*sim.Nanosecond, Packet{Src: src, Dst: (src*7 + int32(k)) % 10, Bytes: 500 + src, Seq: k})
				}
			}
			times[i] = s.run(t)
		}
		require.Equal(t, times[0], times[1])
	}
}
