package nic

import (
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// timeline draws a NIC: tracks for matching, DMA in each direction, the link
// and every processor. A flow follows one message through all of them. A nil
// timeline draws nothing.
type timeline struct {
	t                  sim.Tracer
	rank               int
	nic, in, out, link sim.TrackID
	processors         []sim.TrackID
	follow             *follow // nil: there is no sim.Follower
}

// TraceGroup is the group of a node's tracks. The group's number is the node's
// rank.
const TraceGroup = "rank"

func newTimeline(e *env, s *schedule) *timeline {
	if !e.engine.Tracing() {
		return nil
	}
	t := e.engine.Tracer()
	rank := int(e.rank)
	tr := &timeline{t: t, rank: rank}
	tr.nic = t.Track(TraceGroup, rank, "NIC match")
	for k := range s.pools {
		p := &s.pools[k]
		for i := range p.cores {
			tr.processors = append(tr.processors, t.Track(TraceGroup, rank, fmt.Sprintf("%s %d", p.name, i)))
		}
	}
	tr.in = t.Track(TraceGroup, rank, "DMA to host")
	tr.out = t.Track(TraceGroup, rank, "DMA from host")
	tr.link = t.Track(TraceGroup, rank, "link")
	tr.follow = newFollow(e)
	e.bus.Watch(tr.transfer)
	return tr
}

// matchBits are the match bits of a message. Protocols use them to distinguish
// their messages.
func matchBits(f *Frame) sim.Arg { return sim.Arg{Key: "match bits", Num: int64(f.Header.MatchBits)} }

// cause is the flow that a message was sent because of, 0 if unknown.
func cause(f *Frame) sim.Arg {
	return sim.Arg{Key: sim.CauseKey, Num: int64(f.cause & (1<<causeBits - 1))}
}

// wire draws packet i of a message while it enters the link.
func (t *timeline) wire(p *fabric.Packet, f *Frame, from, to sim.Time) {
	if t == nil {
		return
	}
	t.t.Span(t.link, f.Header.Kind.String(), from, to, f.Flow(),
		sim.Arg{Key: "to", Num: int64(p.Dst)}, sim.Arg{Key: "packet", Num: int64(p.Seq)}, sim.Arg{Key: "bytes", Num: int64(p.Bytes)}, matchBits(f), cause(f))
	t.onWire(p, f.Flow(), int(p.Seq), from, to)
}

// wireSegment draws a packet of the NIC's transport while it enters the link.
func (t *timeline) wireSegment(p *fabric.Packet, k portals.OpKind, flow uint64, i int, from, to sim.Time) {
	if t == nil {
		return
	}
	t.t.Span(t.link, k.String(), from, to, flow,
		sim.Arg{Key: "to", Num: int64(p.Dst)}, sim.Arg{Key: "packet", Num: int64(i)}, sim.Arg{Key: "bytes", Num: int64(p.Bytes)})
	t.onWire(p, flow, i, from, to)
}

// match draws the search for a header packet.
func (t *timeline) match(in *inbound, from, to sim.Time) {
	if t == nil {
		return
	}
	t.t.Span(t.nic, "match "+in.frame.Header.Kind.String(), from, to, in.frame.Flow(),
		sim.Arg{Key: "from", Num: int64(in.frame.Header.Initiator.NID)}, sim.Arg{Key: "bytes", Num: int64(in.frame.Length)}, matchBits(in.frame), cause(in.frame))
}

// finished marks when the events of a message become visible to the host.
func (t *timeline) finished(in *inbound, at sim.Time) {
	if t == nil {
		return
	}
	t.t.Instant(t.nic, "event", at, in.frame.Flow())
	t.done(in.frame)
}

// transfer draws a transfer while it occupies the bus.
func (t *timeline) transfer(a *host.Access, toHost bool, from, to sim.Time, bytes int) {
	track, name := t.out, "read"
	if toHost {
		track, name = t.in, "write"
	}
	t.t.Span(track, name, from, to, a.Flow, sim.Arg{Key: "bytes", Num: int64(bytes)})
	t.crosses(a, toHost, from, to, bytes)
}

// segment draws a segment of a handler, and with the last segment the handler's
// result.
func (t *timeline) segment(r *run, end sim.Time) {
	if t == nil {
		return
	}
	in := r.task.in
	args := append(make([]sim.Arg, 0, 8), // room for what it returned
		sim.Arg{Key: "context", Num: int64(r.index) - int64(r.core.first)},
		sim.Arg{Key: "packet", Num: int64(r.task.packet)},
		sim.Arg{Key: "cycles", Num: r.cycles - r.charged},
		matchBits(in.frame), cause(in.frame),
		sim.Arg{Key: "message", Num: int64(in.number)},
		sim.Arg{Key: "source", Num: int64(in.frame.Header.Initiator.NID)},
	)
	if r.status != hpu.Blocked {
		code := r.ctx.Outcome().Code
		args = append(args, sim.Arg{Key: "returned", Num: int64(code), Text: code.Name()})
	}
	t.t.Span(t.processors[r.core.index], in.handlers.memory.name+" "+r.task.kind.String(), r.start, end, in.frame.Flow(), args...)
	t.computes(r, end)
}
