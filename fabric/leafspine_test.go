package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// Every pair has a route, over a spine between leaves, without a circle. With rails
// the devices of a host are at different leaves.
func TestLeafSpineRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := spinDis()
		spec.Kind, spec.LeafNodes, spec.Spines = LeafSpine, rapid.IntRange(1, 7).Draw(t, "nodes of a leaf"), rapid.IntRange(1, 5).Draw(t, "spines")
		spec.Paths = rapid.SampledFrom([]string{"", ByFlow}).Draw(t, "paths")
		spec.Rails = rapid.IntRange(0, 4).Draw(t, "rails")
		nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
		topo, err := spec.checked(nodes)
		require.NoError(t, err)
		require.NoError(t, CheckRoutes(topo, nodes, true))
		for src := range nodes {
			for dst := range nodes {
				links := 0
				along(topo, src, dst, func(int) { links++ })
				rails := max(1, spec.Rails)
				same := src%rails == dst%rails && src/rails/spec.LeafNodes == dst/rails/spec.LeafNodes
				require.Equal(t, map[bool]int{true: 1, false: 3}[same], links)
			}
		}
	})
}

// Eight nodes of a leaf send to those of another over two spines: four flows
// share a link, so the last of 50 packets of each takes four times as long, as
// long as by closed form, and the links up are always busy.
func TestOversubscription(t *testing.T) {
	const nodes, packets = 8, 50
	spec := spinDis()
	spec.Kind, spec.LeafNodes, spec.Spines, spec.Header = LeafSpine, nodes, 2, 0
	s := build(t, spec, 2*nodes, nil)
	for src := range int32(nodes) {
		for range packets {
			s.ports[src].Send(Packet{Src: src, Dst: nodes + src, Bytes: spec.MTU})
		}
	}
	last := sim.Time(0)
	for _, a := range s.run(t) {
		last = max(last, a.at)
	}
	require.Equal(t, s.f.Latency(0, nodes, spec.MTU)+(nodes/2*packets-1)*spec.Serial(int(spec.MTU)), last)
	for _, l := range s.f.Links() {
		if l.Name == "Leaf[0].Up[0]" || l.Name == "Leaf[0].Up[1]" {
			require.EqualValues(t, nodes/2*packets, l.Packets)
		}
	}
}
