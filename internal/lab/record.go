package lab

import (
	"fmt"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Step is a step of the Portals interface of a rank.
type Step struct {
	At     sim.Time
	Rank   int
	NI     *portals.NI
	Record *portals.TraceRecord // valid only during the call
}

// Event is a full event with its time.
type Event struct {
	At   sim.Time
	Rank int
	portals.Event
}

// Refusal is a message that no entry took.
type Refusal struct {
	At     sim.Time
	Rank   int
	Header portals.Header
	Fail   portals.FailType
}

func (m Refusal) Error() string {
	return fmt.Sprintf("rank %d at %v: no entry took a %s of %d B from rank %d: %s (portal table index %d, match bits %#x)",
		m.Rank, m.At, m.Header.Kind, m.Header.RLength, m.Header.Initiator.NID, m.Fail, m.Header.PT, m.Header.MatchBits)
}

// keptRefusals is the most refusals that are stored; all are counted.
const keptRefusals = 20

// Trace implements portals.Tracer.
func (r *Run) Trace(ni *portals.NI, t *portals.TraceRecord) {
	id, err := ni.PhysID()
	if err != nil {
		return // an interface that was shut down
	}
	rank, now := int(id.NID), r.Cluster.Engine().Now()
	if r.See != nil {
		r.See(Step{now, rank, ni, t})
	}
	n := &r.Nodes[rank]
	switch t.What {
	case portals.TraceEvent:
		n.Counted[t.Event.Type]++
		if t.Event.Fail != portals.NIOK {
			n.LastFail = t.Event.Fail
		}
		if r.Keep(rank, t.Event) {
			r.Events = append(r.Events, Event{now, rank, *t.Event})
		}
	case portals.TraceRefused:
		n.Refused++
		if len(r.Refused) < keptRefusals {
			r.Refused = append(r.Refused, Refusal{now, rank, *t.Delivery.Header, t.Delivery.Fail})
		}
	case portals.TraceMatched:
		if t.Delivery.MLength < t.Delivery.Header.RLength {
			n.Truncated++
		}
	}
}
