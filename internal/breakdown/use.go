package breakdown

import (
	"cmp"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// Resources of a node besides processors.
const (
	dmaIn   = "DMA to memory"
	dmaOut  = "DMA from memory"
	egress  = "egress"
	ingress = "ingress"
	stalled = "stalled" // not busy: accesses to absent pages that wait for the operating system
)

// Queues of a node.
const (
	queueHPU    = iota // handlers that wait for a processor
	queueBuffer        // bytes of packets that wait for a processor
	queueDMA           // transfers that wait for the bus
	queueEgress        // packets that wait for the link
	queueCount
)

// change is a change of a queue's length.
type change struct {
	at sim.Time
	by int64
}

// Interval is the time of a measurement.
type Interval struct{ From, To sim.Time }

// Use is the load in a time. Shares of the time show how busy the busiest node
// was, for each kind of resource. Lengths show the longest queue of each kind.
type Use struct {
	Processors    float64 // processors of handlers computed, in the busiest pool
	In, Out       float64 // bytes of messages crossed the bus to and from host memory
	Egress        float64 // the link of a node took packets
	Ingress       float64 // packets came in
	Waiting       int64   // maximum of handlers that waited for a processor
	Buffer        int64   // maximum of bytes of packets that waited for one
	Transfers     int64   // maximum of accesses to host memory that waited for the bus
	EgressPackets int64   // maximum of packets that were at the NIC and waited for the link
}

// queue records the effect of a step on the queues of a node.
func (r *Record) queue(n *nodeRecord, s *sim.Step) {
	between := func(q int, from, to sim.Time, by int64) {
		if to > from {
			n.queues[q] = append(n.queues[q], change{from, by}, change{to, -by})
		}
	}
	switch s.Kind {
	case sim.StepTransfer:
		between(queueDMA, s.Asked, s.From, 1)
	case sim.StepWire:
		if p := r.message(s.Flow).packet(s.Packet); p.ready > 0 && p.wired == 0 {
			between(queueEgress, p.ready, s.From, 1)
		}
	case sim.StepArrived:
		r.message(s.Flow).packet(s.Packet).bytes = s.Bytes
	case sim.StepSegment:
		if s.Why != sim.NotStopped {
			return
		}
		from := r.wanted(s)
		between(queueHPU, from, s.From, 1)
		if p := r.message(s.Flow).packet(s.Packet); s.Handler == payloadTask {
			between(queueBuffer, p.found, s.From, p.bytes)
		}
	}
}

// wanted returns since when a handler has waited for a processor. s is the
// start of its first segment.
func (r *Record) wanted(s *sim.Step) sim.Time {
	m := r.message(s.Flow)
	from := m.packet(s.Packet).found
	switch s.Handler {
	case completionTask:
		for i := range m.marks {
			if at := m.marks[i].at; at <= s.From {
				from = max(from, at)
			}
		}
	case payloadTask:
		if h := r.tasks[sim.Task{Flow: s.Flow}]; h != nil {
			from = max(from, h.segments[len(h.segments)-1].to)
		}
	}
	return from
}

// Use returns how busy the nodes were in intervals, which may overlap. pools
// has the number of processors of each pool of a node, HPUs first.
func (r *Record) Use(pools []int, intervals []Interval) (u Use) {
	times := category{}
	for _, i := range intervals {
		if i.To > i.From {
			times.spans = append(times.spans, span{i.From, i.To})
		}
	}
	times.settle()
	total := sim.Time(0)
	for _, s := range times.spans {
		total += s.to - s.from
	}
	if total == 0 {
		return u
	}
	share := func(spans []span) float64 {
		k := category{spans: slices.Clone(spans)}
		k.settle()
		_, taken := without(nil, times.spans, k.spans)
		return float64(taken) / float64(total)
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		u.In, u.Out = max(u.In, share(n.busy[dmaIn])), max(u.Out, share(n.busy[dmaOut]))
		u.Egress, u.Ingress = max(u.Egress, share(n.busy[egress])), max(u.Ingress, share(n.busy[ingress]))
		first := int32(0)
		for _, size := range pools {
			sum := 0.0
			for k := first; k < first+int32(size); k++ {
				sum += share(n.processors[k])
			}
			first += int32(size)
			u.Processors = max(u.Processors, sum/float64(max(size, 1)))
		}
		for q, most := range []*int64{&u.Waiting, &u.Buffer, &u.Transfers, &u.EgressPackets} {
			*most = max(*most, longest(n.queues[q], times.spans))
		}
	}
	return u
}

// longest returns the maximum length of a queue in times, which are sorted and
// disjoint. At one moment, departures come before arrivals.
func longest(changes []change, times []span) (most int64) {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now, t := int64(0), 0
	for i, c := range changes {
		now += c.by
		until := sim.MaxTime
		if i+1 < len(changes) {
			until = changes[i+1].at
		}
		if until == c.at {
			continue
		}
		for t < len(times) && times[t].to <= c.at {
			t++
		}
		if t < len(times) && times[t].from < until {
			most = max(most, now)
		}
	}
	return most
}
