package spin17

import (
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
)

// ruleWatch counts the steps of handlers.
type ruleWatch struct {
	headless                       bool // there is no header handler
	headers, payloads, completions int
	disorder, active, most, moved  int
	killed, refused                int
	cycles                         int64
	blocked, longest               sim.Time
	hpus                           []int              // of payload handlers, first to last
	ends                           []sim.Time         // of completion handlers
	running                        map[int64]*ruleRun // by number
	messages                       map[uint64]*ruleMessage
}

// ruleRun is a handler that has begun and not ended.
type ruleRun struct {
	hpu   int
	began sim.Time
	since sim.Time // when its put began to wait; -1: it does not wait
}

// ruleMessage counts the handlers of a message that run.
type ruleMessage struct {
	header, payloads int
	opened, closed   bool // its header handler has ended; its completion handler has begun
}

// step is for runtime.Config.Watch.
func (w *ruleWatch) step(s *nic.HandlerStep) {
	switch s.What {
	case nic.StepBegan:
		w.began(s)
	case nic.StepActed:
		w.acted(s)
	case nic.StepAnswered:
		r := w.running[s.Number]
		if r.since >= 0 {
			w.blocked = max(w.blocked, s.At-r.since)
			w.result(s)
		}
		r.since = -1
	case nic.StepEnded:
		w.ended(s)
	}
}

func (w *ruleWatch) message(s *nic.HandlerStep) *ruleMessage {
	if w.messages == nil {
		w.messages, w.running = map[uint64]*ruleMessage{}, map[int64]*ruleRun{}
	}
	if w.messages[s.Message] == nil {
		w.messages[s.Message] = &ruleMessage{opened: w.headless}
	}
	return w.messages[s.Message]
}

func (w *ruleWatch) began(s *nic.HandlerStep) {
	m := w.message(s)
	w.running[s.Number] = &ruleRun{hpu: s.HPU, began: s.At, since: -1}
	wrong := m.closed
	switch s.Handler {
	case "header":
		wrong = wrong || m.opened || m.header > 0 || m.payloads > 0
		w.headers++
		m.header++
	case "payload":
		wrong = wrong || !m.opened
		w.payloads++
		w.hpus = append(w.hpus, s.HPU)
		m.payloads++
		w.active++
		w.most = max(w.most, w.active)
	default:
		wrong = wrong || !m.opened || m.payloads > 0
		w.completions++
		m.closed = true
	}
	if wrong {
		w.disorder++
	}
}

func (w *ruleWatch) acted(s *nic.HandlerStep) {
	if s.Op != hpu.OpPutFromHost && s.Op != hpu.OpPutFromDevice {
		return
	}
	if s.Suspended {
		w.running[s.Number].since = s.At
		return
	}
	w.result(s)
}

// result counts a put that was refused.
func (w *ruleWatch) result(s *nic.HandlerStep) {
	if s.Result < 0 {
		w.refused++
	}
}

func (w *ruleWatch) ended(s *nic.HandlerStep) {
	m, r := w.message(s), w.running[s.Number]
	delete(w.running, s.Number)
	if s.HPU != r.hpu {
		w.moved++
	}
	switch s.Handler {
	case "header":
		m.header--
		m.opened = true
	case "payload":
		m.payloads--
		w.active--
		w.cycles, w.longest = max(w.cycles, s.Cycles), max(w.longest, s.At-r.began)
		if s.Err != nil && s.Err.Kind == hpu.TrapBudget {
			w.killed++
		}
	default:
		w.ends = append(w.ends, s.At)
	}
}

// values are the values of columns. seen is when the host saw that all messages
// are complete; 0: never.
func (w *ruleWatch) values(seen sim.Time) experiment.Values {
	before := 0
	for _, end := range w.ends {
		if end <= seen {
			before++
		}
	}
	v := experiment.Values{
		"headers": w.headers, "payloads": w.payloads, "completions": w.completions, "before_event": before, "disorder": w.disorder,
		"active": w.most, "moved": w.moved, "first_hpu": nil, "second_hpu": nil, "most_cycles": w.cycles, "longest": w.longest, "killed": w.killed, "refused": w.refused, "blocked": w.blocked,
	}
	for i, name := range []string{"first_hpu", "second_hpu"} {
		if i < len(w.hpus) {
			v[name] = w.hpus[i]
		}
	}
	return v
}
