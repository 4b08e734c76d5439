package scenario

import (
	"fmt"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// recorder notes the steps of the interfaces of all ranks, with their times.
type recorder struct {
	run     *run
	ranks   []counts
	wanted  EventSet
	events  []event
	refused []refusal
}

// counts holds the counters of a rank.
type counts struct {
	events    [64]int64 // by type
	refused   int64
	truncated int64
	lastFail  portals.FailType // of an event
}

// event is a full event with its time.
type event struct {
	at   sim.Time
	rank int
	portals.Event
}

// refusal is a message that no entry took.
type refusal struct {
	at     sim.Time
	rank   int
	header portals.Header
	fail   portals.FailType
}

func (m refusal) Error() string {
	return fmt.Sprintf("rank %d at %v: no entry took a %s of %d B from rank %d: %s (portal table index %d, match bits %#x)",
		m.rank, m.at, m.header.Kind, m.header.RLength, m.header.Initiator.NID, m.fail, m.header.PT, m.header.MatchBits)
}

// keptRefusals is the most refusals that are stored; all are counted.
const keptRefusals = 20

// Trace implements portals.Tracer.
func (r *recorder) Trace(ni *portals.NI, t *portals.TraceRecord) {
	id, err := ni.PhysID()
	if err != nil {
		return // an interface that was shut down
	}
	rank := int(id.NID)
	now := r.run.cluster.Engine().Now()
	if tell := r.run.explain; tell != nil {
		tell(&ExplainStep{At: now, Rank: rank, NI: ni, Record: t, Name: func(h portals.Handle) string { return r.run.name(rank, h) }})
	}
	c := &r.ranks[rank]
	switch t.What {
	case portals.TraceEvent:
		c.events[t.Event.Type]++
		if t.Event.Fail != portals.NIOK {
			c.lastFail = t.Event.Fail
		}
		if r.wanted.chosen[t.Event.Type] {
			r.events = append(r.events, event{now, rank, *t.Event})
		}
	case portals.TraceRefused:
		c.refused++
		if len(r.refused) < keptRefusals {
			r.refused = append(r.refused, refusal{now, rank, *t.Delivery.Header, t.Delivery.Fail})
		}
	case portals.TraceMatched:
		if t.Delivery.MLength < t.Delivery.Header.RLength {
			c.truncated++
		}
	}
}

// source names the cause of an event: an entry, or a step that posted the
// operation.
func (r *recorder) source(e *event) string {
	switch {
	case e.UserPtr&stepPtr != 0:
		if id := int(e.UserPtr &^ stepPtr); id < len(r.run.stepPaths) {
			return r.run.stepPaths[id]
		}
	case e.UserPtr > 0 && e.UserPtr <= uint64(len(r.run.entries)):
		return r.run.entries[e.UserPtr-1].Name
	}
	return ""
}
