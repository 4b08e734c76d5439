package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/sim"
)

// journey is a packet of the reference model on its way along its path.
type journey struct {
	p     Packet
	path  []Hop
	hop   int
	at    sim.Time // head at the sending side of link hop
	from  sim.ID   // the element it comes from
	order int
	in    sim.Time // serialisation on the link before
	done  sim.Time
	lost  string // the link whose queue had no room
}

// span is a packet on a link, until its end.
type span struct{ end, length sim.Time }

// senders returns the sender's ID of each link.
func (s *sink) senders() map[string]sim.ID {
	n := networkOf(s.f)
	ids := map[string]sim.ID{}
	for i := range n.ports {
		ids[nodeLink(i)] = s.first + sim.ID(i)
	}
	for i := range n.links {
		ids[n.topo.LinkName(i)] = n.first + sim.ID(n.topo.Link(i).From)
	}
	return ids
}

// recompute is the simple model. It takes the packet whose head is first at its
// next link, at equal times in the order of events. The packet takes that link
// when it is there and the link is free.
func recompute(s *sink, spec Spec, all []*journey) {
	senders, free, posted, queues := s.senders(), map[string]sim.Time{}, map[sim.ID]int{}, map[string][]span{}
	before := func(a, b *journey) bool {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(senders[a.path[a.hop].Link], senders[b.path[b.hop].Link]),
			cmp.Compare(a.from, b.from), cmp.Compare(a.order, b.order)) < 0
	}
	for {
		var j *journey
		for _, other := range all {
			if other.hop < len(other.path) && (j == nil || before(other, j)) {
				j = other
			}
		}
		if j == nil {
			return
		}
		hop := j.path[j.hop]
		length := hop.Rate.Time(int64(j.p.Bytes) + int64(spec.Header))
		if spec.Queue > 0 && j.hop > 0 {
			room := hop.Rate.Time(spec.Queue)
			for _, q := range queues[hop.Link] {
				room -= max(0, min(q.length, q.end-j.at)) // the one that is leaving counts with its rest
			}
			if room < length {
				j.lost, j.done, j.hop = hop.Link, j.at, len(j.path)
				continue
			}
		}
		start := max(j.at, free[hop.Link])
		if j.hop > 0 && !spec.StoreAndForward {
			start = max(start, j.at+j.in-length)
		}
		end := start + length
		j.at, j.done = start+hop.Wire, end+hop.Wire
		free[hop.Link] = end
		queues[hop.Link] = append(queues[hop.Link], span{end, length})
		if j.hop == 0 && !s.isUnit(j.p.Src) { // the node's own link
			free[hop.Link] = max(end, start+spec.Gap)
		}
		if spec.StoreAndForward {
			j.at = j.done
		}
		j.at += spec.Switch
		j.in, j.from = length, senders[hop.Link]
		j.order = posted[j.from]
		posted[j.from]++
		j.hop++
	}
}

func drawSpec(t *rapid.T) (Spec, int) {
	spec := spinDis()
	nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
	switch spec.Kind = rapid.SampledFrom([]string{FatTree, LeafSpine, Crossbar, Torus, File}).Draw(t, "kind"); spec.Kind {
	case FatTree:
		spec.Radix = rapid.SampledFrom([]int{4, 6, 36}).Draw(t, "radix")
		spec.Paths = rapid.SampledFrom([]string{"", ByDestination, ByFlow}).Draw(t, "paths")
	case LeafSpine:
		spec.LeafNodes, spec.Spines = rapid.IntRange(1, 9).Draw(t, "nodes of a leaf"), rapid.IntRange(1, 5).Draw(t, "spines")
		spec.Paths = rapid.SampledFrom([]string{"", ByDestination, ByFlow}).Draw(t, "paths")
	case Torus:
		spec.Dims = rapid.SliceOfN(rapid.IntRange(1, 5), 1, 3).Draw(t, "dims")
		nodes = 1
		for _, d := range spec.Dims {
			nodes *= d
		}
		nodes = rapid.IntRange((nodes+1)/2, nodes).Draw(t, "nodes of the torus")
	case File:
		spec.Topology = drawPlan(t, nodes)
	}
	spec.Gap = sim.Time(rapid.IntRange(0, 60000).Draw(t, "gap"))
	spec.StoreAndForward = rapid.Bool().Draw(t, "store and forward")
	spec.Header = rapid.Int32Range(1, 40).Draw(t, "header")
	spec.Rate = sim.NewRate(sim.Time(rapid.IntRange(1, 100).Draw(t, "ps")), rapid.Int64Range(1, 3).Draw(t, "per"))
	spec.SwitchRate = sim.NewRate(sim.Time(rapid.IntRange(0, 100).Draw(t, "switch ps")), 1)
	return spec, nodes
}

// drawPlan draws a connected network.
func drawPlan(t *rapid.T, nodes int) (p Plan) {
	count := rapid.IntRange(1, 8).Draw(t, "switches")
	name := func(i int) string { return fmt.Sprintf("s%d", i) }
	cable := func(from, to int) {
		l := PlanLink{From: name(from), To: name(to)}
		if rapid.Bool().Draw(t, "own wire") {
			l.Wire, l.Rate = sim.Time(rapid.IntRange(1, 50000).Draw(t, "wire")), sim.NewRate(sim.Time(rapid.IntRange(1, 50).Draw(t, "rate")), 1)
		}
		p.Links = append(p.Links, l)
	}
	for i := range count {
		p.Switches = append(p.Switches, PlanSwitch{Name: name(i)})
		if i > 0 {
			cable(rapid.IntRange(0, i-1).Draw(t, "parent"), i)
		}
	}
	if count > 1 {
		for range rapid.IntRange(0, 8).Draw(t, "more cables") {
			from := rapid.IntRange(0, count-1).Draw(t, "from")
			cable(from, (from+rapid.IntRange(1, count-1).Draw(t, "to"))%count)
		}
	}
	for range nodes {
		p.Nodes = append(p.Nodes, PlanNodes{At: name(rapid.IntRange(0, count-1).Draw(t, "at"))})
	}
	return p
}

// Random traffic arrives at the times of the simple model, to the picosecond:
// each packet once, in order for each pair, none faster than Latency.
func TestRandomTrafficAgainstTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t)
		if spec.Kind != File && rapid.Bool().Draw(t, "queue") { // links of one rate
			spec.SwitchRate, spec.Queue = sim.Rate{}, spec.full()*rapid.Int64Range(1, 3).Draw(t, "room")+rapid.Int64Range(0, 2000).Draw(t, "more")
		}
		if spec.Queue == 0 {
			drawUnits(t, &spec)
		}
		s := build(t, spec, nodes, nil)
		var all []*journey
		node := rapid.Int32Range(0, int32(s.f.Nodes())-1)
		for i := range rapid.IntRange(1, 60).Draw(t, "packets") {
			p := Packet{
				Src: node.Draw(t, "src"), Dst: node.Draw(t, "dst"), Seq: uint32(i),
				Bytes: rapid.SampledFrom([]int32{0, 1, 64, 1000, 4096}).Draw(t, "bytes"), Ref: s,
			}
			at := sim.Time(rapid.IntRange(0, 20).Draw(t, "at")) * 20 * sim.Nanosecond
			all = append(all, &journey{p: p, path: s.f.Path(int(p.Src), int(p.Dst)), at: at, order: i})
			s.inject(at, p)
		}
		starts := map[uint32]sim.Time{}
		for _, j := range all {
			starts[j.p.Seq] = j.at
		}
		recompute(s, spec, all)
		got := s.run(t)
		sent := len(all)
		all = dropped(t, s, all)
		require.Len(t, got, len(all))
		slices.SortFunc(got, func(a, b arrival) int { return cmp.Compare(a.p.Seq, b.p.Seq) })
		last := map[[2]int32]arrival{}
		for i, a := range got {
			require.Equal(t, arrival{all[i].done, all[i].p, KindArrive}, a)
			require.GreaterOrEqual(t, a.at-starts[a.p.Seq], s.f.Latency(int(a.p.Src), int(a.p.Dst), a.p.Bytes))
			pair := [2]int32{a.p.Src, a.p.Dst}
			if before, ok := last[pair]; ok && starts[before.p.Seq] < starts[a.p.Seq] {
				path := s.f.Path(int(a.p.Src), int(a.p.Dst))
				// which may round to 0 ps
				least := path[len(path)-1].Rate.Time(int64(a.p.Bytes) + int64(spec.Header))
				require.LessOrEqual(t, before.at, a.at-min(least, 1), "order of a pair")
			}
			last[pair] = a
		}
		toNode := map[string]bool{}
		for _, j := range all {
			toNode[j.path[len(j.path)-1].Link] = true
		}
		var injected, delivered int64
		for _, l := range s.f.Links() {
			switch {
			case l.Name[0] == 'N':
				injected += l.Packets
			case toNode[l.Name]:
				delivered += l.Packets
			}
		}
		require.Equal(t, []int64{int64(sent), int64(len(all))}, []int64{injected, delivered})
	})
}

// dropped compares the packets for which a queue had no room with the losses of
// the fabric, and returns the others.
func dropped(t require.TestingT, s *sink, all []*journey) []*journey {
	type loss struct {
		at   sim.Time
		link string
		seq  uint32
	}
	want, got := map[loss]bool{}, map[loss]bool{}
	all = slices.DeleteFunc(all, func(j *journey) bool {
		if j.lost != "" {
			want[loss{j.done, j.lost, j.p.Seq}] = true
		}
		return j.lost != ""
	})
	losses, n := s.f.Losses()
	require.Len(t, losses, n)
	for _, l := range losses {
		require.Equal(t, QueueFull, l.Cause)
		got[loss{l.At, l.Link, l.Packet.Seq}] = true
	}
	require.Equal(t, want, got)
	return all
}

// The closed form holds for every pair, rate and way of forwarding.
func TestLatencyOfALonePacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t)
		drawUnits(t, &spec)
		s := build(t, spec, nodes, nil)
		node := rapid.Int32Range(0, int32(s.f.Nodes())-1)
		p := Packet{Src: node.Draw(t, "src"), Dst: node.Draw(t, "dst"), Bytes: rapid.Int32Range(0, 4096).Draw(t, "bytes")}
		var free sim.Time
		s.f.Watch(func(_ Packet, _, to sim.Time) { free = to })
		s.ports[p.Src].Send(p)
		want := max(spec.Gap, spec.Rate.Time(int64(p.Bytes+spec.Header)))
		if s.isUnit(p.Src) {
			want = spec.Units.Rate.Time(int64(p.Bytes + spec.Header))
		}
		require.Equal(t, want, free)
		require.Equal(t, s.f.Latency(int(p.Src), int(p.Dst), p.Bytes), s.run(t)[0].at)
	})
}
