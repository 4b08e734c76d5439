package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/lab"

	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Result is the outcome of a run.
type Result struct {
	End      sim.Time // of the run
	Checked  int      // comparisons made by expectations
	Failures []string // the same as in the error of the run
	Notes    []string
	Cut      string // what has ended the run early; "": nothing

	ranks   int
	samples []sim.Time        // of all measured intervals
	tables  experiment.Values // that are shown
}

// statInfo describes a counter of a rank.
type statInfo struct {
	name, help string
	kind       report.Kind
	count      func(r *run, rank int) int64
}

// stats are the columns of the table, and the names for expectations.
var stats = []statInfo{
	{"packets_sent", "Packets put on the wire.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.PacketsSent })},
	{"packets_received", "Packets that arrived.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.PacketsReceived })},
	{"packets_dropped", "Packets dropped for want of room or of a process, or by the network.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.PacketsDropped })},
	{"messages_lost", "Messages to the rank of which packets were dropped for want of room or of a process, or by the network, and messages of it that a reliable transport has given up.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.MessagesLost })},
	{"messages_refused", "Messages that no entry took.", report.Count, ofRank(func(n *lab.Node) int64 { return n.Refused })},
	{"messages_truncated", "Messages of which an entry took only a part.", report.Count, ofRank(func(n *lab.Node) int64 { return n.Truncated })},
	{"retransmitted", "Packets that a reliable transport has sent again.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.Retransmitted })},
	{"duplicates", "Packets that came again to a reliable transport.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.Duplicates })},
	{"nic_faults", "Looks of the NIC at pages that were not there, or not its to write; one that is tried again counts again.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.NICFaults })},
	{"page_faults", "Pages that the operating system has brought or made writable, for programs and the NIC.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.PageFaults })},
	{"major_faults", "Those of them that waited for storage.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.MajorFaults })},
	{"handler_calls", "Handlers that ran.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.HandlerCalls })},
	{"handler_errors", "Handlers that trapped, were killed or returned an error.", report.Count, func(r *run, rank int) int64 { return r.states[rank].handlersFailed }},
	{"handler_cycles", "Cycles charged to handlers.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.HandlerCycles })},
	{"flow_control", "Messages in which flow control was triggered.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.FlowControl })},
	{"lost_actions", "Actions of handlers on counters that were freed meanwhile.", report.Count, ofNode(func(s *runtime.Stats) int64 { return s.LostActions })},
	{"host_memory_bytes", "Bytes through host memory: DMA in both directions and streams of the cores.", report.Size, ofNode(func(s *runtime.Stats) int64 { return s.HostMemoryBytes })},
}

func ofNode(get func(*runtime.Stats) int64) func(*run, int) int64 {
	return func(r *run, rank int) int64 {
		s := r.Cluster.Node(rank).Stats()
		return get(&s)
	}
}

func ofRank(get func(*lab.Node) int64) func(*run, int) int64 {
	return func(r *run, rank int) int64 { return get(&r.Nodes[rank]) }
}

// result collects the outputs of the scenario.
func (r *run) result(err error) *Result {
	x := &Result{End: r.Cluster.Engine().Now(), Checked: r.checked, Cut: r.cut, ranks: r.ranks, tables: make(experiment.Values)}
	slices.SortStableFunc(r.logs, func(a, b logRow) int { return cmp.Compare(a.Time, b.Time) })
	shown := r.shown()
	for _, t := range tables() {
		if slices.Contains(shown, t.Name) {
			x.tables[t.Name] = t.rows(r)
		}
	}
	if err != nil {
		x.Failures = strings.Split(err.Error(), "\n")
	}
	if note := r.profile.Serve.Idle(r.running()); note != "" {
		x.Notes = append(x.Notes, note)
	}
	if r.unlogged > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("handlers logged %s more than are shown", lab.Plural(r.unlogged, "line", "lines")))
	}
	for rank := range r.states {
		if n := r.Nodes[rank].Truncated; n > 0 {
			x.Notes = append(x.Notes, fmt.Sprintf("rank %d: %s to fit in an entry", rank, lab.Plural(int(n), "message truncated", "messages truncated")))
		}
		if n := r.Cluster.Node(rank).Stats().PacketsDropped; n > 0 {
			x.Notes = append(x.Notes, fmt.Sprintf("rank %d: %s", rank, lab.Plural(int(n), "packet dropped", "packets dropped")))
		}
		for _, l := range r.states[rank].latencies {
			x.samples = append(x.samples, l.samples...)
		}
	}
	return x
}

// mean returns the mean of at least one sample, rounded down to a picosecond.
// The sum may be too large for a sim.Time.
func mean(samples []sim.Time) sim.Time {
	n := sim.Time(len(samples))
	var whole, rest sim.Time
	for _, v := range samples {
		whole += v / n
		rest += v % n
	}
	return whole + rest/n
}

// source names the cause of an event: an entry, or a step that posted the
// operation.
func (p *Plan) source(e *lab.Event) string {
	switch {
	case e.UserPtr&stepPtr != 0:
		if id := int(e.UserPtr &^ stepPtr); id < len(p.stepPaths) {
			return p.stepPaths[id]
		}
	case e.UserPtr > 0 && e.UserPtr <= uint64(len(p.entries)):
		return p.entries[e.UserPtr-1].Name
	}
	return ""
}
