package fabric

import (
	"fmt"
	"testing"

	"github.com/spinsim/spinsim/sim"
)

// pump keeps every node at half its rate. Each packet that arrives brings the
// node's next, to a destination that changes from packet to packet.
type pump struct {
	eng     *sim.Engine
	f       Fabric
	ids     sim.ID
	left    int
	nodes   int
	ports   []Port
	took    sim.Time
	bounded bool
	bytes   int32
	pause   sim.Time // between the beginnings of a node's packets
}

const kindNext sim.Kind = 1

func (p *pump) Handle(e *sim.Event) {
	if e.Kind == KindReady {
		return
	}
	if e.Kind == KindArrive {
		if p.bounded {
			p.ports[e.A&nodeMask].Release(Unpack(e))
		}
		if p.left--; p.left == 0 {
			p.eng.Stop()
		}
		return
	}
	scattered := (uint64(e.Dst)<<32 + e.A) * 0x9e3779b97f4a7c15 >> 32
	dst := int32(scattered * uint64(p.nodes) >> 32)
	src := int32(e.Dst - p.ids)
	if p.bounded && !p.ports[src].Ready(Requests) { // with bounded buffers: wait for the next time
		p.eng.Post(e.Time+p.took, e.Dst, e.Dst, kindNext, e.A, 0, nil)
		return
	}
	p.ports[src].Send(Packet{Src: src, Dst: dst, Bytes: p.bytes, Ref: p})
	p.eng.Post(e.Time+p.pause, e.Dst, e.Dst, kindNext, e.A+1, 0, nil)
}

func newPump(tb testing.TB, spec Spec, nodes int) *pump {
	return newPumpOf(tb, spec, nodes, 4096, 2*spec.Occupied(4096))
}

// newPumpOf returns a pump of packets of bytes bytes.
func newPumpOf(tb testing.TB, spec Spec, nodes int, bytes int32, pause sim.Time) *pump {
	p := &pump{eng: sim.New(1), nodes: nodes, took: spec.Occupied(int(bytes)), bounded: len(spec.Buffer) > 0, bytes: bytes, pause: pause}
	var err error
	if p.f, err = New(p.eng, spec, nodes); err != nil {
		tb.Fatal(err)
	}
	p.ids = p.eng.AddGroup(nodes, func(i int) string { return fmt.Sprintf("Node[%d]", i) }, p)
	for i := range nodes {
		p.ports = append(p.ports, p.f.Attach(i, p.ids+sim.ID(i)))
		p.eng.Post(sim.Time(i), p.ids+sim.ID(i), p.ids+sim.ID(i), kindNext, uint64(i), 0, nil)
	}
	p.run(tb, 20*nodes)
	return p
}

func (p *pump) run(tb testing.TB, packets int) {
	p.left = packets
	if err := p.eng.Run(); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkPacket measures one packet from injection to arrival, with the
// sender's event for the next one. Metric events/op is the number of events.
func BenchmarkPacket(b *testing.B) {
	for _, c := range []struct {
		kind  string
		nodes int
	}{{Crossbar, 16}, {Crossbar, 1024}, {FatTree, 36}, {FatTree, 648}, {FatTree, 11664}, {FatTree, 16384}} {
		b.Run(fmt.Sprintf("%s/%d", c.kind, c.nodes), func(b *testing.B) {
			spec := spinDis()
			if spec.Kind = c.kind; c.kind == Crossbar {
				spec.Radix = 0
			}
			p := newPump(b, spec, c.nodes)
			before := p.eng.Handled()
			b.ReportAllocs()
			b.ResetTimer()
			p.run(b, b.N)
			b.ReportMetric(float64(p.eng.Pending()), "pending")
			b.ReportMetric(float64(p.eng.Handled()-before)/float64(b.N), "events/op")
		})
	}
}

// BenchmarkCellHop measures a cell on one link of ExaNeSt's network with
// credits, with its share of the cost of the ends. Every node sends cells of
// 256 B to random nodes, at about half the rate that the rings carry.
func BenchmarkCellHop(b *testing.B) {
	for _, c := range []struct {
		dims  []int
		pause sim.Time
	}{{[]int{4, 4, 2}, 2 * sim.Microsecond}, {[]int{16, 16, 4}, 8 * sim.Microsecond}} {
		spec := exanestSpec(c.dims...)
		b.Run(fmt.Sprint(spec.qfdbs().Nodes()), func(b *testing.B) {
			p := newPumpOf(b, spec, spec.qfdbs().Nodes(), 256, c.pause)
			hops, before := p.hops(), p.eng.Handled()
			b.ReportAllocs()
			b.ResetTimer()
			p.run(b, b.N)
			passed := float64(p.hops() - hops)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/passed, "ns/hop")
			b.ReportMetric(passed/float64(b.N), "hops/op")
			b.ReportMetric(float64(p.eng.Handled()-before)/passed, "events/hop")
		})
	}
}

func (p *pump) hops() (n int64) {
	for _, l := range p.f.Links() {
		n += l.Packets
	}
	return n
}

// BenchmarkNewExanest measures the bytes of memory and the time that a system
// costs before the first cell. The largest system has only four of its MPSoCs
// in use.
func BenchmarkNewExanest(b *testing.B) {
	for _, c := range []struct {
		dims  []int
		nodes int
	}{{[]int{4, 4, 2}, 128}, {[]int{16, 16, 4}, 4096}, {[]int{1024, 512, 2}, 4}} {
		b.Run(fmt.Sprint(c.dims), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := New(sim.New(1), exanestSpec(c.dims...), c.nodes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNew measures the cost of a fat tree of 16,384 nodes before the first
// packet.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(sim.New(1), spinDis(), 16384); err != nil {
			b.Fatal(err)
		}
	}
}
