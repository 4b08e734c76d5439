package fabric

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// pausing returns a Spec of a plan that pauses from and until packets of 4096 B.
func pausing(plan Plan, from, until int64) Spec {
	spec := spinDis()
	spec.Kind, spec.Radix, spec.Topology, spec.AnswersFirst = File, 0, plan, true
	spec.PauseFrom, spec.PauseUntil = from*4096, until*4096
	return spec
}

// line is a switch a with some nodes, a cable of a rate, and a switch b with
// two nodes.
func line(nodes int, rate sim.Rate) Plan {
	return Plan{
		Switches: []PlanSwitch{{Name: "a"}, {Name: "b"}},
		Nodes:    []PlanNodes{{At: "a", Count: nodes}, {At: "b", Count: 2}},
		Links:    []PlanLink{{From: "a", To: "b", Rate: rate}},
	}
}

// hold makes a node send count packets to a node, each when its port is ready.
func (s *sink) hold(src, dst int32, count int) {
	if s.held == nil {
		s.held = make([][Classes][]Packet, s.f.Nodes())
	}
	for range count {
		list := &s.held[src][Requests]
		*list = append(*list, Packet{Src: src, Dst: dst, Bytes: 4096, Seq: uint32(len(*list))})
	}
	s.sendHeld(int(src), Requests)
}

// linkNamed returns the totals of a link.
func (s *sink) linkNamed(name string) (found LinkStats) {
	for _, l := range s.f.Links() {
		if l.Name == name {
			found = l
		}
	}
	return found
}

// Of a packet's time L = 81.92 ns on the node's link, the cable takes 4 L. The
// k-th packet is at the cable at k L + 83.4 ns, and packets leave 4 L apart.
//   - The third, 2 L after the first, is one more than two: its node learns it at
//     2 L + 83.4 + 33.4 = 280.64 ns, in the middle of the fourth packet.
//   - After three have left, 12 L behind the first, one is there: the node may go
//     on at 12 L + 116.8 = 1099.84 ns. It sends three more packets.
//   - The second of these is one too many at 1099.84 + L + 83.4 ns, and the pause is
//     at the node during the third, at 1298.56 ns. Three more leave, 24 L behind
//     the first, and the last packet goes.
//
// The cable is never idle, so packets arrive as without pauses.
func TestPausesByHand(t *testing.T) {
	const l, there, back = 81920, 83400, 33400
	spec := pausing(line(1, sim.NewRate(80, 1)), 2, 1)
	require.NoError(t, spec.Validate())
	s := build(t, spec, 3, nil)
	s.hold(0, 1, 8)
	for k, a := range s.run(t) {
		require.Equal(t, sim.Time(there+4*l*k+there+4*l+back), a.at)
	}
	require.Len(t, s.got, 8)
	require.Contains(t, s.ready, sim.Time(1099840))
	require.Contains(t, s.ready, sim.Time(24*l+there+back))
	own := s.linkNamed(nodeLink(0))
	require.Equal(t, int64(2), own.Pauses)
	require.Equal(t, sim.Time(1099840-280640+24*l+there+back-1298560), own.Paused)
	require.Equal(t, int64(4*4096), own.MaxBuffer)
}

// Answers go on while requests are paused.
func TestAnswersPassAPause(t *testing.T) {
	s := build(t, pausing(line(1, sim.NewRate(8000, 1)), 1, 0), 3, nil)
	s.hold(0, 1, 4)
	require.NoError(t, s.eng.RunUntil(sim.Microsecond))
	require.False(t, s.ports[0].Ready(Requests))
	require.True(t, s.ports[0].Ready(Answers))
	s.ports[0].Send(Packet{Src: 0, Dst: 1, Bytes: 64, Class: Answers, Seq: 9})
	require.Equal(t, uint32(9), s.run(t)[1].p.Seq, "behind the request that was leaving")
	require.Len(t, s.got, 5)
}

// Head-of-line blocking: nodes send to node r, and one, the victim, to the node
// beside it, over a cable that could carry all of them. Without pauses the victim
// has the rate of its link. With them the cable is paused until r has room, and
// the victim's packets wait with the others': of n senders that all wait to the
// same degree each has the n-th part of r's link, and the victim as much as each.
func TestPausesBlockTheVictim(t *testing.T) {
	for _, senders := range []int{2, 3} { // more get shares that depend on who is first in a round
		const each = 2000
		times := map[int64]sim.Time{}
		for _, from := range []int64{0, 8} {
			spec := pausing(line(senders+1, sim.NewRate(sim.Time(20/(senders+1)), 1)), from, from/2)
			spec.InjectBuffer = 4096
			s := build(t, spec, senders+3, nil)
			r, victim := int32(senders+1), int32(senders)
			for i := range int32(senders) {
				s.hold(i, r, each)
			}
			s.hold(victim, r+1, each/2)
			for _, a := range s.run(t) {
				if a.p.Src == victim {
					times[from] = a.at
				}
			}
			require.Len(t, s.got, each*senders+each/2)
			require.Equal(t, from > 0, s.linkNamed("a->b").Paused > 0)
		}
		require.InEpsilon(t, each/2*81920, float64(times[0]), 0.01)
		require.InEpsilon(t, float64(senders), float64(times[8])/float64(times[0]), 0.01)
	}
}

// A queue that holds what one link brings until its sender pauses loses nothing
// of one, and drops some of what three bring.
func TestPausesWithAQueue(t *testing.T) {
	for senders, loses := range map[int]bool{1: false, 3: true} {
		spec := pausing(line(senders, sim.NewRate(80, 1)), 4, 2)
		spec.Queue = 30416
		require.NoError(t, spec.Validate())
		s := build(t, spec, senders+2, nil)
		for i := range senders {
			s.hold(int32(i), int32(senders), 50)
		}
		got := len(s.run(t))
		_, lost := s.f.Losses()
		require.Equal(t, 50*senders, got+lost)
		require.Equal(t, loses, lost > 0)
		s.resumed(t)
	}
}

// ring is four switches in a ring of one direction, each with a node.
func ring() (p Plan) {
	for i := range 4 {
		name := fmt.Sprint("s", i)
		p.Switches = append(p.Switches, PlanSwitch{Name: name})
		p.Nodes = append(p.Nodes, PlanNodes{At: name})
		p.Links = append(p.Links, PlanLink{From: name, To: fmt.Sprint("s", (i+1)%4), OneWay: true})
	}
	return p
}

// Each node of the ring sends to the node opposite, over two links. Each link has
// to carry the traffic of two nodes, so all pause, each until the next goes on.
// The run says so, and its books know where the packets are.
func TestDeadlockOfPausesHasItsName(t *testing.T) {
	const each = 40
	s := build(t, pausing(ring(), 4, 2), 4, nil)
	for i := range int32(4) {
		s.hold(i, (i+2)%4, each)
	}
	err := s.eng.Run()
	var stuck *sim.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Len(t, stuck.Waiting, 1)
	require.Regexp(t, `^nothing left to happen at .*, but 1 still wait:
  link s0->s1 \(\d+ B at its end\) waits since .* for s1->s2 \(\d+ B at its end\), which waits for s2->s3 \(\d+ B at its end\), which waits for s3->s0 \(\d+ B at its end\), which waits for s0->s1 \(\d+ B at its end\): PFC deadlock, a circle of paused links$`, err.Error())
	b, exact := BalanceOf(s.f)
	require.True(t, exact)
	left := 0
	for i := range s.held {
		left += len(s.held[i][Requests])
	}
	require.Equal(t, int64(4*each-left-len(s.got)), b.Waiting.Packets)
	require.Positive(t, left)
	require.Contains(t, err.Error(), fmt.Sprintf("s0->s1 (%d B", networkOf(s.f).pauses.in[4].bytes))

	s = build(t, pausing(ring(), 4, 2), 4, nil)
	for i := range int32(4) {
		s.hold(i, (i+1)%4, each) // one link each: no circle
	}
	require.Len(t, s.run(t), 4*each)
}

// A long pause in the middle of a run is no deadlock.
func TestPausesAreNoDeadlock(t *testing.T) {
	s := build(t, pausing(line(3, sim.NewRate(8000, 1)), 1, 0), 5, nil)
	for i := range int32(3) {
		s.hold(i, 3, 4)
	}
	for at := range sim.Time(400) {
		require.NoError(t, s.eng.RunUntil(at*sim.Microsecond))
		deadlocks{networkOf(s.f)}.Waiting(func(w sim.Waiting) { require.Fail(t, w.What) })
	}
	require.Len(t, s.run(t), 12)
}

// drawHeld draws messages: source, destination, and number of packets.
func drawHeld(t *rapid.T, nodes int) (all [][3]int) {
	node := rapid.IntRange(0, nodes-1)
	for range rapid.IntRange(1, 12).Draw(t, "messages") {
		all = append(all, [3]int{node.Draw(t, "src"), node.Draw(t, "dst"), rapid.IntRange(1, 30).Draw(t, "packets")})
	}
	return all
}

// resumed checks that no link is paused, and that nothing is left in switches.
func (s *sink) resumed(t require.TestingT) {
	if n := networkOf(s.f); n.pauses != nil {
		for k := range n.pauses.in {
			require.Zero(t, n.pauses.in[k].bytes)
			require.False(t, n.pauses.in[k].paused)
			require.False(t, n.pauses.out[k].paused)
		}
	}
}

// On random networks of every kind a run ends with every packet, or with the
// name of a deadlock: none hangs without one, and none that has one ends.
func TestPausesDoNotHangWithoutAName(t *testing.T) {
	deadlocks := 0
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t)
		spec.AnswersFirst = true
		spec.PauseFrom = rapid.Int64Range(1, 3*spec.full()).Draw(t, "from")
		spec.PauseUntil = rapid.Int64Range(0, spec.PauseFrom).Draw(t, "until")
		all := drawHeld(t, nodes)
		if rapid.Bool().Draw(t, "ring") { // all send round it
			spec.Kind, spec.Radix, spec.LeafNodes, spec.Spines, spec.Paths = Torus, 0, 0, 0, ""
			nodes, all = rapid.IntRange(5, 9).Draw(t, "nodes of the ring"), nil
			spec.Dims, spec.Topology = []int{nodes}, Plan{}
			for i := range nodes {
				all = append(all, [3]int{i, (i + 2) % nodes, 40})
			}
		}
		require.NoError(t, spec.Validate())
		s, packets := build(t, spec, nodes, nil), 0
		for _, m := range all {
			s.hold(int32(m[0]), int32(m[1]), m[2])
			packets += m[2]
		}
		if err := s.eng.Run(); err != nil {
			require.ErrorContains(t, err, "PFC deadlock, a circle of paused links")
			require.Less(t, len(s.got), packets)
			deadlocks++
			return
		}
		require.Len(t, s.got, packets)
		s.resumed(t)
	})
	require.Positive(t, deadlocks)
}

// On random trees nothing is lost and nothing hangs, whatever the thresholds, and
// what a link brings after the threshold fits the headroom of the profile's check.
// A threshold that is never reached changes nothing.
func TestPausesOfTreesLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t)
		if spec.Kind == Torus || spec.Kind == File {
			return
		}
		spec.AnswersFirst, spec.InjectBuffer, spec.Gap = true, spec.full(), 0
		drawUnits(t, &spec)
		from := rapid.Int64Range(1, 5*spec.full()).Draw(t, "from")
		all := drawHeld(t, nodes)
		until := rapid.Int64Range(0, from).Draw(t, "until")
		var got [3][]arrival
		for i, f := range []int64{0, maxInject, from} {
			spec.PauseFrom, spec.PauseUntil = f, min(f, until)
			require.NoError(t, spec.Validate())
			s, packets := build(t, spec, nodes, nil), 0
			for _, m := range all {
				s.hold(int32(m[0]), int32(m[1]), m[2])
				packets += m[2]
			}
			got[i] = s.run(t)
			require.Len(t, got[i], packets)
			room := int64(0)
			for _, w := range networkOf(s.f).wirings {
				room = max(room, f+spec.headroom(w.rate, w.wire))
			}
			for _, l := range s.f.Links() {
				require.LessOrEqual(t, l.MaxBuffer, room, l.Name)
			}
			s.resumed(t)
		}
		require.Equal(t, got[0], got[1])
	})
}

func TestPausesAllocateNothing(t *testing.T) {
	spec := spinDis()
	spec.AnswersFirst, spec.PauseFrom, spec.PauseUntil = true, 4096, 0
	p := newPump(t, spec, 40)
	p.bounded = true // ask whether the port is ready
	p.run(t, 50_000)
	require.Zero(t, testing.AllocsPerRun(20, func() { p.run(t, 1000) }))
	require.Positive(t, p.f.Links()[0].Pauses)
}

// Each bound of the fields names the field and what it wants.
func TestBoundsOfPauses(t *testing.T) {
	for want, change := range map[string]func(s *Spec){
		"pause_from: want 0 (no pauses) to 1073741824 bytes, got -1":                                                                   func(s *Spec) { s.PauseFrom = -1 },
		"pause_until: want 0 to pause_from, 16384 bytes, got 16385":                                                                    func(s *Spec) { s.PauseUntil = 16385 },
		"pause_until: want 0 to pause_from, 0 bytes, got 8192":                                                                         func(s *Spec) { s.PauseFrom = 0 },
		"pause_from: requests pause and answers do not":                                                                                func(s *Spec) { s.AnswersFirst = false },
		"pause_from: with trim packets are cut":                                                                                        func(s *Spec) { s.Trim, s.Header, s.Queue = TrimEither, 1, 1<<20 },
		"inject_buffer: with pause_from a node chooses its next packet when its link is free: want 0 or mtu + header = 4096, got 4097": func(s *Spec) { s.InjectBuffer = 4097 },
		// 2 x 33.4 ns + 50 ns at 20 ps/B, and two packets
		"want 0 or at least 30416 bytes, got 30415": func(s *Spec) { s.Queue = 30415 },
	} {
		spec := pausing(ring(), 4, 2)
		change(&spec)
		err := spec.Validate()
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "%v", err)
	}
	spec := pausing(ring(), 4, 2)
	spec.Queue = 30416
	require.NoError(t, spec.Validate())
}

// Ultra Ethernet's simulator, spcl/HTSIM 8a33f33, with its network for RoCE and
// the route strategy ecmp_host:
//
//	htsim_roce -nodes 8 -tiers 2 -tm victim.cm -linkspeed 200000 -mtu 4096 \
//	    -hop_latency 1 -q 10000 -paths 16 -seed N
//
// victim.cm is 1->0, 2->0 and 4->0 of 8,192,000 B, and 5->3, the victim, of
// 4,096,000. Which of them share a spine depends on the seed. In microseconds:
//
//   - 2->0 and 4->0 on a spine, 5->3 on the other (seeds 4 and 5): 667.276 for 1->0,
//     174.909 or 175.532 for 5->3;
//   - all on one spine (10 seeds of 1 to 40): 667.276, and 718.919 or 729.361;
//   - 4->0 and 5->3 on a spine, 2->0 on the other (8): 958.309 or 959.474, and
//     570.612 or 582.765.
//
// Its acknowledgements are paused with the data; here there are none, and their
// time is added.
func TestPausesAgainstHtsim(t *testing.T) {
	leaves := Plan{
		Switches: []PlanSwitch{{Name: "l0"}, {Name: "l1"}, {Name: "l2"}, {Name: "s0"}, {Name: "s1"}},
		Nodes:    []PlanNodes{{At: "l0", Count: 2}, {At: "l1", Count: 2}, {At: "l2", Count: 2}},
	}
	cable := func(from, to string, oneWay bool) PlanLink { return PlanLink{From: from, To: to, OneWay: oneWay} }
	one := []PlanLink{cable("l0", "s0", false), cable("l1", "s0", false), cable("l2", "s0", false)}
	for _, c := range []struct {
		links       []PlanLink
		own, victim float64
	}{
		// packets to node 0 take s0, and to node 3 s1
		{append([]PlanLink{cable("l0", "s1", false), cable("l1", "s1", false), cable("l2", "s1", false)}, one...), 667.276, 174.909},
		{one, 667.276, 718.919},
		{[]PlanLink{cable("l1", "s1", true), cable("s1", "l0", true), cable("l0", "s0", false), cable("s0", "l1", true), cable("l2", "s0", false)}, 958.309, 570.612},
	} {
		leaves.Links = c.links
		const packet = 4096 + 64
		spec := pausing(leaves, 0, 0)
		spec.PauseFrom, spec.PauseUntil = 15*packet, 12*packet-1
		spec.Rate, spec.Wire, spec.Switch, spec.Header, spec.StoreAndForward = sim.NewRate(40, 1), sim.Microsecond, 0, 64, true
		s := build(t, spec, 6, nil)
		for _, f := range [][3]int{{1, 0, 2000}, {2, 0, 2000}, {4, 0, 2000}, {5, 3, 1000}} {
			s.hold(int32(f[0]), int32(f[1]), f[2])
		}
		last := map[int32]sim.Time{}
		for _, a := range s.run(t) {
			last[a.p.Src] = a.at
		}
		back := func(links sim.Time) sim.Time { return links * (spec.Wire + spec.Rate.Time(64)) }
		require.InEpsilon(t, c.own, (last[1] + back(2)).Microseconds(), 0.04)
		require.InEpsilon(t, c.victim, (last[5] + back(4)).Microseconds(), 0.05)
	}
}
