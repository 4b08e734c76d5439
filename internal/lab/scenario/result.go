package scenario

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/lab"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Result is the outcome of a run.
type Result struct {
	End      sim.Time // of the run
	Checked  int      // comparisons made by expectations
	Failures []string // the same as in the error of the run
	Tables   map[string]*report.Table
	Notes    []string
	Cut      string // what has ended the run early; "": nothing

	ranks   int
	samples []sim.Time // of all measured intervals
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

// tableTitles are the headings of the tables.
var tableTitles = map[string]string{
	"latency": "Latencies", "breakdown": "Where the time went", "stats": "What the ranks counted", "state": "HPU memory at the end", "memory": "Host memory at the end", "events": "Events",
	"log": "What handlers logged",
}

// result collects the outputs of the scenario.
func (r *run) result(err error) *Result {
	x := &Result{End: r.Cluster.Engine().Now(), Checked: r.checked, Cut: r.cut, Tables: r.tables(), ranks: r.ranks}
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

// tables returns the tables of the scenario by their names.
func (r *run) tables() map[string]*report.Table {
	shown := r.shown()
	if r.only == "" {
		shown = append(shown, "log")
	}
	all := make(map[string]*report.Table)
	for _, name := range shown {
		all[name] = map[string]func() *report.Table{
			"latency": r.latencyTable, "breakdown": r.breakdownTable, "stats": r.statsTable, "state": r.stateTable,
			"memory": r.memoryTable, "events": r.eventTable, "log": r.logTable,
		}[name]()
	}
	return all
}

var rankColumn = report.Column{Name: "rank", Kind: report.Count, Help: "Rank."}

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

func (r *run) latencyTable() *report.Table {
	t := report.New(latencyColumns()...)
	for rank := range r.states {
		for _, l := range r.states[rank].latencies {
			sorted := slices.Sorted(slices.Values(l.samples))
			n := len(sorted)
			t.Add(rank, l.name, n, sorted[0], sorted[(n-1)/2], mean(sorted), sorted[n-1])
		}
	}
	return t
}

func (r *run) statsTable() *report.Table {
	t := report.New(statsColumns()...)
	for _, rank := range must(r.some(r.output.Stats, nil, r.env)) {
		row := []any{rank}
		for _, s := range stats {
			row = append(row, s.count(r, rank))
		}
		t.Add(append(row, r.Cluster.Node(rank).Stats().CPUBusy)...)
	}
	return t
}

// dumpBytes is the number of bytes in a row of a hexadecimal dump.
const dumpBytes = 16

func (r *run) stateTable() *report.Table {
	t := report.New(stateColumns()...)
	for i := range r.output.State {
		o := &r.output.State[i]
		for _, rank := range must(r.holders(o.Of, o.Ranks, nil, r.env)) {
			if !r.states[rank].ready { // the run failed before the entry existed
				continue
			}
			in := r.states[rank].entries[o.Of]
			b := in.made.HPU.Bytes()
			for f := range in.plan.layout.fields() {
				if o.Fields == nil || slices.Contains(o.Fields, f.Name) {
					t.Add(rank, o.Of, f.Offset, f.Name, string(f.Field.Type), f.Text(b), hex.EncodeToString(b[f.Offset:f.Offset+f.Field.Type.Size()]))
				}
			}
			if !in.plan.layout.known() {
				dump(b, 0, func(off int64, row string) { t.Add(rank, o.Of, off, nil, nil, nil, row) })
			}
		}
	}
	return t
}

// must returns ranks that the plan has already checked.
func must(ranks []int, err error) []int {
	if err != nil {
		panic("scenario: ranks that were checked: " + err.Error())
	}
	return ranks
}

func dump(b []byte, from int64, row func(off int64, row string)) {
	for at := 0; at < len(b); at += dumpBytes {
		row(from+int64(at), fmt.Sprintf("% x", b[at:min(at+dumpBytes, len(b))]))
	}
}

func (r *run) memoryTable() *report.Table {
	t := report.New(memoryColumns()...)
	for i := range r.output.Memory {
		o := &r.output.Memory[i]
		for _, rank := range must(r.holders(o.Of, o.Ranks, nil, r.env)) {
			if !r.states[rank].ready {
				continue
			}
			s, err := r.spanOf(rank, o.Of, o.Offset, o.Bytes, r.on(rank))
			if err != nil {
				panic("scenario: a range that was checked: " + err.Error())
			}
			dump(r.states[rank].view(s).Snapshot(), s.off, func(off int64, row string) { t.Add(rank, o.Of, off, row) })
		}
	}
	return t
}

func (r *run) eventTable() *report.Table {
	t := report.New(eventColumns()...)
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Type {
		case portals.EventSend, portals.EventAck, portals.EventReply:
			t.Add(e.At, e.Rank, e.Type.String(), r.source(e), nil, int64(e.MLength), nil, nil, nil, e.Fail.String())
		case portals.EventLink, portals.EventAutoUnlink, portals.EventAutoFree, portals.EventPTDisabled:
			t.Add(e.At, e.Rank, e.Type.String(), r.source(e), nil, nil, nil, nil, nil, e.Fail.String())
		default:
			t.Add(e.At, e.Rank, e.Type.String(), r.source(e), int64(e.Initiator.NID), int64(e.MLength), int64(e.RLength),
				fmt.Sprintf("%#x", e.MatchBits), fmt.Sprintf("%#x", e.HdrData), e.Fail.String())
		}
	}
	return t
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

func (r *run) logTable() *report.Table {
	t := report.New(logColumns()...)
	slices.SortStableFunc(r.logs, func(a, b logLine) int { return int(min(max(a.at-b.at, -1), 1)) })
	for _, l := range r.logs {
		t.Add(l.at, l.rank, l.module, l.text)
	}
	return t
}
