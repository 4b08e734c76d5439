package handlerlab

import (
	"cmp"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// tally is a sim.Follower that adds up the work of one node.
type tally struct {
	node     int32
	occupied func(bytes int) sim.Time // time that a packet occupies the link

	packetsIn         int      // of messages that handlers saw
	lineIn, lineOut   sim.Time // link time for those, and for the packets that the node sends
	others            sim.Time // link time for other incoming packets: replies, acknowledgements
	bytesIn, bytesOut int64    // across the bus
	computed, inside  sim.Time
	calls, processor  int
	cycles            int64
	began             sim.Time              // the first handler
	ends              []sim.Time            // of handlers
	arrived           [2]sim.Time           // first and last packet of packetsIn
	packets           map[sim.Task]waits    // arrived, by message and packet
	running           map[sim.Task]sim.Time // beginnings of running handlers
	last              map[sim.Task]sim.Time
	changes           []change // of the bytes that wait for payload handlers
	mostBuffered      int64

	most int // the run stops after this number of calls
	stop func()
}

// waits is a packet that has arrived.
type waits struct {
	bytes int64
	came  sim.Time
	found sim.Time
}

type change struct {
	at sim.Time
	by int64
}

// Track implements sim.Tracer.
func (t *tally) Track(string, int, string) sim.TrackID { return 0 }

// Span implements sim.Tracer.
func (t *tally) Span(sim.TrackID, string, sim.Time, sim.Time, uint64, ...sim.Arg) {}

// Instant implements sim.Tracer.
func (t *tally) Instant(sim.TrackID, string, sim.Time, uint64, ...sim.Arg) {}

// Counter implements sim.Tracer.
func (t *tally) Counter(sim.TrackID, string, sim.Time, float64) {}

// Step implements sim.Follower.
func (t *tally) Step(s *sim.Step) {
	if s.Rank != t.node {
		return
	}
	switch s.Kind {
	case sim.StepArrived:
		t.packets[sim.Task{Flow: s.Flow, Packet: s.Packet}] = waits{bytes: s.Bytes, came: s.To}
	case sim.StepFound:
		k := sim.Task{Flow: s.Flow, Packet: s.Packet}
		t.packets[k] = waits{s.Bytes, t.packets[k].came, s.To}
	case sim.StepWire:
		t.lineOut += t.occupied(int(s.Bytes))
	case sim.StepTransfer:
		if s.Out {
			t.bytesOut += s.Bytes
		} else {
			t.bytesIn += s.Bytes
		}
	case sim.StepSegment:
		t.segment(s)
	}
}

// segment is a part of a handler's run.
func (t *tally) segment(s *sim.Step) {
	t.computed += s.To - s.From
	if s.Why == sim.NotStopped {
		if t.calls == 0 {
			t.began = s.From
		}
		t.calls++
		t.processor = int(s.Processor)
		t.running[s.Task] = s.From
		if len(t.running) > t.most {
			t.stop()
		}
		if p := t.packets[sim.Task{Flow: s.Flow, Packet: s.Packet}]; s.Handler == 1 && p.found < s.From {
			t.changes = append(t.changes, change{p.found, p.bytes}, change{s.From, -p.bytes})
		}
	}
	t.last[s.Task] = s.To
}

// finish adds up the results from the beginnings and ends of handlers.
func (t *tally) finish() {
	handled := map[uint64]bool{}
	for task, from := range t.running { //lint:maporder sums, and a list that is sorted
		to := t.last[task]
		t.inside += to - from
		t.ends = append(t.ends, to)
		handled[task.Flow] = true
	}
	for task, p := range t.packets { //lint:maporder sums
		if line := t.occupied(int(p.bytes)); handled[task.Flow] {
			if t.packetsIn == 0 || p.came < t.arrived[0] {
				t.arrived[0] = p.came
			}
			t.arrived[1] = max(t.arrived[1], p.came)
			t.packetsIn++
			t.lineIn += line
		} else {
			t.others += line
		}
	}
	slices.Sort(t.ends)
	slices.SortFunc(t.changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	now := int64(0)
	for _, c := range t.changes {
		now += c.by
		t.mostBuffered = max(t.mostBuffered, now)
	}
}
