package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
}

// stage puts links in an order in which every path crosses them: nodes, up,
// down.
func stage(link string) int {
	var level, index int
	var direction string
	if _, err := fmt.Sscanf(link, "Switch[%d][%d].%s", &level, &index, &direction); err != nil {
		return -1
	}
	if direction[0] == 'U' {
		return level
	}
	return 1000 - level
}

// element returns the ID of what sends on a link.
func (s *sink) element(link string) sim.ID {
	for id := range s.first + sim.ID(s.f.Nodes()) {
		name := s.eng.Name(id)
		if len(link) > len(name) && link[:len(name)+1] == name+"." {
			return id
		}
	}
	panic("no element sends on " + link)
}

// recompute is the dumb model: link after link, all packets that ever use it, in
// the order of coming, each starting when it is there and the link is free.
func recompute(s *sink, spec Spec, all []*journey) {
	for {
		var link string
		for _, j := range all {
			if j.hop < len(j.path) && (link == "" || stage(j.path[j.hop].Link) < stage(link)) {
				link = j.path[j.hop].Link
			}
		}
		if link == "" {
			return
		}
		var users []*journey
		for _, j := range all {
			if j.hop < len(j.path) && j.path[j.hop].Link == link {
				users = append(users, j)
			}
		}
		slices.SortFunc(users, func(a, b *journey) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from, b.from), cmp.Compare(a.order, b.order))
		})
		sender, free := s.element(link), sim.Time(0)
		for i, j := range users {
			hop := j.path[j.hop]
			length := hop.Rate.Time(int64(j.p.Bytes) + int64(spec.Header))
			start := max(j.at, free)
			if j.hop > 0 && !spec.StoreAndForward {
				start = max(free, j.at+j.in-length, j.at)
			}
			free = start + length
			j.at, j.done = start+hop.Wire, free+hop.Wire
			if j.hop == 0 { // the node's own link
				free = max(free, start+spec.Gap)
			}
			if spec.StoreAndForward {
				j.at = j.done
			}
			j.at += spec.Switch
			j.in, j.from, j.order = length, sender, i
			j.hop++
		}
	}
}

func drawSpec(t *rapid.T) (Spec, int) {
	spec := spinDis()
	spec.Radix = rapid.SampledFrom([]int{0, 4, 6, 36}).Draw(t, "radix")
	if spec.Radix == 0 {
		spec.Kind = Crossbar
	}
	spec.Gap = sim.Time(rapid.IntRange(0, 60000).Draw(t, "gap"))
	spec.StoreAndForward = rapid.Bool().Draw(t, "store and forward")
	spec.Header = rapid.Int32Range(1, 40).Draw(t, "header")
	spec.Rate = sim.NewRate(sim.Time(rapid.IntRange(1, 100).Draw(t, "ps")), rapid.Int64Range(1, 3).Draw(t, "per"))
	spec.SwitchRate = sim.NewRate(sim.Time(rapid.IntRange(0, 100).Draw(t, "switch ps")), 1)
	return spec, rapid.IntRange(1, 40).Draw(t, "nodes")
}

// Random traffic arrives when the dumb model says, to the picosecond: each packet
// once, in order for each pair, none faster than Latency.
func TestRandomTrafficAgainstTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t)
		s := build(t, spec, nodes, nil)
		var all []*journey
		node := rapid.Int32Range(0, int32(nodes)-1)
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
		require.Len(t, got, len(all))
		slices.SortFunc(got, func(a, b arrival) int { return cmp.Compare(a.p.Seq, b.p.Seq) })
		last := map[[2]int32]arrival{}
		for i, a := range got {
			require.Equal(t, arrival{all[i].done, all[i].p, KindArrive}, a)
			require.GreaterOrEqual(t, a.at-starts[a.p.Seq], s.f.Latency(int(a.p.Src), int(a.p.Dst), a.p.Bytes))
			pair := [2]int32{a.p.Src, a.p.Dst}
			if before, ok := last[pair]; ok && starts[before.p.Seq] < starts[a.p.Seq] {
				require.Less(t, before.at, a.at, "order of a pair")
			}
			last[pair] = a
		}
		var injected, delivered int64
		for _, l := range s.f.Links() {
			switch {
			case l.Name[0] == 'N':
				injected += l.Packets
			case stage(l.Name) == 1000:
				delivered += l.Packets
			}
		}
		require.Equal(t, []int64{int64(len(all)), int64(len(all))}, []int64{injected, delivered})
	})
}

// The closed form holds for every pair, rate and way of forwarding.
func TestLatencyOfALonePacket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t)
		s := build(t, spec, nodes, nil)
		node := rapid.Int32Range(0, int32(nodes)-1)
		p := Packet{Src: node.Draw(t, "src"), Dst: node.Draw(t, "dst"), Bytes: rapid.Int32Range(0, 4096).Draw(t, "bytes")}
		free := s.f.Inject(p)
		require.Equal(t, max(spec.Gap, spec.Rate.Time(int64(p.Bytes+spec.Header))), free)
		require.Equal(t, s.f.Latency(int(p.Src), int(p.Dst), p.Bytes), s.run(t)[0].at)
	})
}
