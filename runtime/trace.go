package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// nodeTrace draws a node on the timeline: tracks for cores in use, NIC, DMA in each direction, link and every HPU. A flow
// follows one message through all of them. A nil nodeTrace draws nothing.
type nodeTrace struct {
	t                  sim.Tracer
	rank               int
	nic, in, out, link sim.TrackID
	hpus               []sim.TrackID
	cpus               []sim.TrackID
}

const traceGroup = "rank"

func newNodeTrace(n *Node) *nodeTrace {
	e := n.cluster.engine
	if !e.Tracing() {
		return nil
	}
	t := e.Tracer()
	rank := int(n.rank)
	tr := &nodeTrace{t: t, rank: rank}
	for i := range n.cores {
		tr.cpus = append(tr.cpus, t.Track(traceGroup, rank, fmt.Sprintf("CPU %d", i)))
	}
	tr.nic = t.Track(traceGroup, rank, "NIC match")
	for i := range n.hpus.cores {
		tr.hpus = append(tr.hpus, t.Track(traceGroup, rank, fmt.Sprintf("HPU %d", i)))
	}
	tr.in = t.Track(traceGroup, rank, "DMA to host")
	tr.out = t.Track(traceGroup, rank, "DMA from host")
	tr.link = t.Track(traceGroup, rank, "link")
	return tr
}

func (t *nodeTrace) cpu(p *Proc, what string, from, to sim.Time) {
	if t == nil {
		return
	}
	t.t.Span(t.cpus[p.core], what, from, to, 0, sim.Arg{Key: "process", Text: p.name})
}

// wire draws a packet while it enters the link.
func (t *nodeTrace) wire(m *message, i int, from, to sim.Time) {
	if t == nil {
		return
	}
	a, b := m.span(i)
	t.t.Span(t.link, m.hdr.Kind.String(), from, to, m.flow,
		sim.Arg{Key: "to", Num: int64(m.target)}, sim.Arg{Key: "packet", Num: int64(i)}, sim.Arg{Key: "bytes", Num: int64(b - a)})
}

// match draws the search for a header packet.
func (t *nodeTrace) match(m *message, from, to sim.Time) {
	if t == nil {
		return
	}
	t.t.Span(t.nic, "match "+m.hdr.Kind.String(), from, to, m.flow,
		sim.Arg{Key: "from", Num: int64(m.hdr.Initiator.NID)}, sim.Arg{Key: "bytes", Num: int64(len(m.data))})
}

// finished marks the moment at which the events of a message become visible to the host.
func (t *nodeTrace) finished(m *message, at sim.Time) {
	if t == nil {
		return
	}
	t.t.Instant(t.nic, "event", at, m.flow)
}

// transfer draws a transfer while it occupies the bus.
func (t *nodeTrace) transfer(d *dma, toHost bool, flow uint64, sent sim.Time, bytes int) {
	if t == nil {
		return
	}
	track, name := t.out, "read"
	if toHost {
		track, name = t.in, "write"
	}
	took := d.rate.Time(int64(bytes))
	if d.bare {
		took = 0
	}
	t.t.Span(track, name, sent-took, sent, flow, sim.Arg{Key: "bytes", Num: int64(bytes)})
}

// segment draws what a handler runs without being suspended.
func (t *nodeTrace) segment(r *run, perCore int, end sim.Time) {
	if t == nil {
		return
	}
	m := r.task.m
	t.t.Span(t.hpus[r.index/perCore], m.rx.handlers.memory.name+" "+r.task.kind.String(), r.start, end, m.flow,
		sim.Arg{Key: "context", Num: int64(r.index % perCore)}, sim.Arg{Key: "packet", Num: int64(r.task.packet)},
		sim.Arg{Key: "cycles", Num: r.ctx.Cycles() - r.charged})
}
