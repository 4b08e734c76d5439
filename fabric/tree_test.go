package fabric

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// spinDis has the figures of sPIN'17 §4: 20 ps/B, 33.4 ns of wire, 50 ns a switch.
func spinDis() Spec {
	return Spec{Kind: FatTree, Radix: 36, Rate: sim.NewRate(20, 1), Wire: 33400, Switch: 50000, MTU: 4096}
}

type arrival struct {
	at sim.Time
	p  Packet
}

// sink collects what arrives at the nodes of a fabric.
type sink struct {
	eng   *sim.Engine
	ids   sim.ID
	got   []arrival
	ready []sim.Time
}

func (s *sink) Handle(e *sim.Event) {
	switch e.Kind {
	case KindArrive:
		s.got = append(s.got, arrival{e.Time, Unpack(e)})
	case KindReady:
		s.ready = append(s.ready, e.Time)
	}
}

func build(t testing.TB, spec Spec, nodes int) (*sim.Engine, Fabric, *sink) {
	t.Helper()
	eng := sim.New(1)
	f, err := New(eng, spec, nodes)
	require.NoError(t, err)
	s := &sink{eng: eng}
	s.ids = eng.AddGroup(nodes, func(i int) string { return fmt.Sprintf("Node[%d]", i) }, s)
	for i := range nodes {
		f.Attach(i, s.ids+sim.ID(i))
	}
	return eng, f, s
}

func TestZeroLoadLatencyIsTheClosedForm(t *testing.T) {
	// A radix-4 tree of 4 levels holds 4·2³ = 32 nodes; digits are base 2.
	spec := spinDis()
	spec.Radix = 4
	for _, c := range []struct{ src, dst, hops int }{
		{0, 0, 1}, {0, 1, 1}, {0, 2, 3}, {3, 1, 3}, {0, 4, 5}, {7, 0, 5}, {0, 8, 7}, {0, 31, 7}, {31, 5, 7},
	} {
		for _, bytes := range []int32{0, 1, 256, 4096} {
			eng, f, s := build(t, spec, 32)
			f.Inject(Packet{Src: int32(c.src), Dst: int32(c.dst), Bytes: bytes})
			require.NoError(t, eng.Run())
			want := sim.Time(c.hops)*50000 + sim.Time(c.hops+1)*33400 + sim.Time(bytes)*20
			require.Equal(t, want, s.got[0].at, "%d to %d", c.src, c.dst)
			require.Equal(t, want, f.Latency(c.src, c.dst, bytes))
			require.Len(t, f.Path(c.src, c.dst), c.hops+1)
		}
	}
}
