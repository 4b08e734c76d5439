package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
)

// cpuTrace draws the cores in use of a node on the timeline, next to its NIC. A nil cpuTrace draws nothing.
type cpuTrace struct {
	t      sim.Tracer
	tracks []sim.TrackID
}

func newCPUTrace(n *Node) *cpuTrace {
	e := n.cluster.engine
	if !e.Tracing() {
		return nil
	}
	tr := &cpuTrace{t: e.Tracer()}
	for i := range n.cores {
		tr.tracks = append(tr.tracks, tr.t.Track(nic.TraceGroup, int(n.rank), fmt.Sprintf("CPU %d", i)))
	}
	return tr
}

func (t *cpuTrace) span(p *Proc, what string, from, to sim.Time) {
	if t == nil {
		return
	}
	t.t.Span(t.tracks[p.core], what, from, to, 0, sim.Arg{Key: "process", Text: p.name})
}
