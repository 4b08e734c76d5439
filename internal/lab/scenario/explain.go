package scenario

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/portals"
)

// ExplainStep is one step of an interface during a run; see Plan.Explain.
type ExplainStep struct {
	lab.Step
	Name func(portals.Handle) string // names of entries, counters and the queue of the rank
}

// Explain makes Run report every step of every interface: the entries examined
// for a request, why each did or did not match, the deliveries, and the events
// and counters that followed.
func (p *Plan) Explain(tell func(*ExplainStep)) { p.explain = tell }

// name returns the scenario's name for an object of a rank.
func (r *run) name(rank int, h portals.Handle) string {
	st := &r.states[rank]
	switch h {
	case st.Queue:
		return "the event queue"
	case st.acks.ct:
		return "of acknowledgements"
	case st.replies.ct:
		return "of replies"
	}
	for _, e := range r.entries {
		switch in := st.entries[e.Name]; {
		case in == nil:
		case in.handle == h:
			return e.Name
		case in.ct == h:
			return "of " + e.Name
		}
	}
	return fmt.Sprintf("#%#x", uint32(h))
}
