package scenario

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Table is one of the tables of a result.
type Table struct {
	Name string // latency, breakdown, stats, state, memory, events, log
	*report.Table
	idle []string // columns that people need not see: zero in every row
}

// Result is the outcome of a run.
type Result struct {
	Title    string
	Profile  string
	Ranks    int
	Seed     uint64
	End      sim.Time // of the run
	Checked  int      // comparisons made by expectations
	Failures []string // the same as in the error of the run
	Tables   []Table  // as selected by the scenario
	Notes    []string
	Origin   *provenance.Record // the inputs; nil: unknown
	// A limit has ended the run; the tables show the time before.
	Incomplete bool
	Cut        string // what has ended the run early, or the sweep; "": nothing
	Runs       int    // of a sweep, with results; 0: the result is of one run

	given []given // further columns of CSV, NDJSON and Parquet
	sweep *joined // with Runs; nil: the result was read from a document
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
	{"messages_refused", "Messages that no entry took.", report.Count, ofRank(func(c *counts) int64 { return c.refused })},
	{"messages_truncated", "Messages of which an entry took only a part.", report.Count, ofRank(func(c *counts) int64 { return c.truncated })},
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
		s := r.cluster.Node(rank).Stats()
		return get(&s)
	}
}

func ofRank(get func(*counts) int64) func(*run, int) int64 {
	return func(r *run, rank int) int64 { return get(&r.rec.ranks[rank]) }
}

// newResult returns the result of a run with the given end, still without
// tables.
func (p *Plan) newResult(end sim.Time) *Result {
	x := &Result{Title: p.spec.Title, Profile: p.profile.Name, Ranks: p.ranks, Seed: p.seed, End: end}
	if x.Title == "" {
		x.Title = p.spec.file
	}
	return x
}

// tableTitles are the headings of the tables.
var tableTitles = map[string]string{
	"latency": "Latencies", "breakdown": "Where the time went", "stats": "What the ranks counted", "state": "HPU memory at the end", "memory": "Host memory at the end", "events": "Events",
	"log": "What handlers logged",
}

// result collects the outputs of the scenario.
func (r *run) result(err error) *Result {
	x := r.newResult(r.cluster.Engine().Now())
	x.Checked, x.Incomplete, x.Cut = r.checked, r.incomplete, r.cut
	if err != nil {
		x.Failures = strings.Split(err.Error(), "\n")
	}
	x.Tables = r.tables()
	if note := r.profile.Serve.Idle(r.running()); note != "" {
		x.Notes = append(x.Notes, note)
	}
	if r.unlogged > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("handlers logged %s more than are shown", plural(r.unlogged, "line", "lines")))
	}
	for rank := range r.states {
		if n := r.rec.ranks[rank].truncated; n > 0 {
			x.Notes = append(x.Notes, fmt.Sprintf("rank %d: %s to fit in an entry", rank, plural(int(n), "message truncated", "messages truncated")))
		}
		if n := r.cluster.Node(rank).Stats().PacketsDropped; n > 0 {
			x.Notes = append(x.Notes, fmt.Sprintf("rank %d: %s", rank, plural(int(n), "packet dropped", "packets dropped")))
		}
	}
	return x
}

// tables returns the tables of the scenario, in the order of TableNames.
func (r *run) tables() (list []Table) {
	shown := r.Tables()
	if r.only == "" && len(r.logs) > 0 {
		shown = append(shown, "log")
	}
	for _, name := range TableNames {
		if !slices.Contains(shown, name) {
			continue
		}
		t := Table{Name: name}
		switch name {
		case "latency":
			t.Table = r.latencyTable()
		case "breakdown":
			t.Table, t.idle = r.breakdownTable()
		case "stats":
			t.Table, t.idle = r.statsTable()
		case "state":
			t.Table = r.stateTable()
		case "memory":
			t.Table = r.memoryTable()
		case "events":
			t.Table = r.eventTable()
		case "log":
			t.Table = r.logTable()
		}
		t.Title = tableTitles[name]
		if r.incomplete {
			t.AddColumn(IncompleteColumn(), true)
		}
		list = append(list, t)
	}
	return list
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

// statsTable returns the table and its columns that are zero everywhere.
func (r *run) statsTable() (t *report.Table, idle []string) {
	columns := statsColumns()
	t = report.New(columns...)
	seen := make([]bool, len(stats))
	for _, rank := range must(r.some(r.output.Stats, nil, r.env)) {
		row := []any{rank}
		for i, s := range stats {
			n := s.count(r, rank)
			row = append(row, n)
			seen[i] = seen[i] || n != 0
		}
		t.Add(append(row, r.cluster.Node(rank).Stats().CPUBusy)...)
	}
	for i := range stats {
		paging := strings.HasSuffix(stats[i].name, "_faults")
		if !seen[i] && (!paging || r.profile.SMMU.On()) {
			idle = append(idle, columns[i+1].Key())
		}
	}
	return t, idle
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
			b := in.memory.Bytes()
			for f := range in.plan.layout.fields() {
				if o.Fields == nil || slices.Contains(o.Fields, f.name) {
					one := b[f.offset : f.offset+f.typ.size]
					t.Add(rank, o.Of, f.offset, f.name, f.typ.name, f.typ.text(one), hex.EncodeToString(one))
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
		row(from+int64(at), spaced(b[at:min(at+dumpBytes, len(b))]))
	}
}

func spaced(b []byte) string { return strings.TrimSpace(fmt.Sprintf("% x", b)) }

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
	for i := range r.rec.events {
		e := &r.rec.events[i]
		switch e.Type {
		case portals.EventSend, portals.EventAck, portals.EventReply:
			t.Add(e.at, e.rank, e.Type.String(), r.rec.source(e), nil, int64(e.MLength), nil, nil, nil, e.Fail.String())
		case portals.EventLink, portals.EventAutoUnlink, portals.EventAutoFree, portals.EventPTDisabled:
			t.Add(e.at, e.rank, e.Type.String(), r.rec.source(e), nil, nil, nil, nil, nil, e.Fail.String())
		default:
			t.Add(e.at, e.rank, e.Type.String(), r.rec.source(e), int64(e.Initiator.NID), int64(e.MLength), int64(e.RLength),
				fmt.Sprintf("%#x", e.MatchBits), fmt.Sprintf("%#x", e.HdrData), e.Fail.String())
		}
	}
	return t
}

func (r *run) logTable() *report.Table {
	t := report.New(logColumns()...)
	slices.SortStableFunc(r.logs, func(a, b logLine) int { return int(min(max(a.at-b.at, -1), 1)) })
	for _, l := range r.logs {
		t.Add(l.at, l.rank, l.module, l.text)
	}
	return t
}

// Err returns the failures of a result as the error of the run.
func (x *Result) Err() error {
	if len(x.Failures) == 0 {
		return nil
	}
	return errors.New(strings.Join(x.Failures, "\n"))
}

// Summary describes the run and its end in a line.
func (x *Result) Summary() string {
	title, outcome := strings.TrimSpace(x.Title), "nothing was expected"
	switch {
	case x.Incomplete:
		outcome = "INCOMPLETE"
	case x.Failures != nil:
		outcome = "FAILED"
	case x.Checked > 0:
		outcome = plural(x.Checked, "comparison holds", "comparisons hold")
	}
	if x.Runs > 0 {
		if x.sweep != nil && x.Runs < x.sweep.planned {
			return fmt.Sprintf("%s: %d of %d runs, %s", title, x.Runs, x.sweep.planned, outcome)
		}
		return fmt.Sprintf("%s: %s, %s", title, Noun.Of(x.Runs), outcome)
	}
	return fmt.Sprintf("%s: %s, %s, seed %d, ended at %v, %s", title, plural(x.Ranks, "rank", "ranks"), x.Profile, x.Seed, x.End, outcome)
}

// withOrigin returns the table with its inputs in every row.
func (x *Result) withOrigin(t Table) *report.Table {
	switch {
	case x.sweep != nil:
		return x.sweep.join(t.Name, (*Result).withOrigin)
	case x.Origin == nil:
		return t.Table
	}
	made := append([]any{provenance.Short(x.Origin.Inputs[0].SHA256)}, x.Origin.Row(&x.Origin.Profiles[0], x.Origin.Handlers)...)
	columns := ProgramColumns()
	for i := len(x.given) - 1; i >= 0; i-- {
		c := x.given[i].column
		c.ForPrograms = true
		for slices.ContainsFunc(t.Columns, func(other report.Column) bool { return other.Key() == c.Key() }) {
			c.Name = parameterPrefix + c.Name
		}
		columns, made = slices.Insert(columns, 0, c), slices.Insert(made, 0, x.given[i].value)
	}
	return t.With(columns, made)
}

// plural formats a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// ProgramColumns are additional columns in every row of CSV and NDJSON.
func ProgramColumns() []report.Column {
	scenario := report.Column{Name: "scenario_hash", ForPrograms: true, Help: "beginning of the SHA-256 of the scenario's file: rows with the same hash are of the same experiment, flags and profile apart"}
	return append([]report.Column{scenario}, provenance.Columns()...)
}

// Write writes the tables. CSV, NDJSON and Parquet hold one table: more are an
// error. JSON is an object with all tables.
func (x *Result) Write(w io.Writer, f report.Format) error {
	switch f {
	case report.JSONFormat:
		return x.writeJSON(w)
	case report.CSVFormat, report.NDJSONFormat, report.ParquetFormat:
		if len(x.Tables) > 1 {
			return fmt.Errorf("%s holds one table, but the scenario shows %s", f, strings.Join(x.names(), ", "))
		}
		for _, t := range x.Tables {
			whole := x.withOrigin(t)
			if x.Origin != nil {
				whole.Origin, whole.Cut = x.Origin, x.Cut
			}
			if err := whole.Write(w, f); err != nil {
				return err
			}
		}
		return nil
	}
	out := report.NewBuffer(w)
	fmt.Fprintln(out, f.Line(x.Summary()))
	for _, t := range x.Tables {
		out.WriteByte('\n')
		shown, err := t.busy()
		if err != nil {
			return err
		}
		if err := shown.Write(out, f); err != nil {
			return err
		}
	}
	below := slices.Clone(x.Notes)
	if x.Origin != nil {
		below = append(below, x.Origin.Lines()...)
	}
	for i, line := range below {
		if i == 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintln(out, f.Line(line))
	}
	_, err := w.Write(out.Bytes())
	return err
}

// busy returns the table without its idle columns. A note names them.
func (t *Table) busy() (*report.Table, error) {
	if t.idle == nil {
		return t.Table, nil
	}
	var keep []string
	for _, c := range t.Columns {
		if !slices.Contains(t.idle, c.Key()) {
			keep = append(keep, c.Key())
		}
	}
	out, err := t.Select(keep...)
	if err == nil {
		out.Notes = append(slices.Clone(out.Notes), "Zero on all these ranks: "+strings.ReplaceAll(strings.Join(t.idle, ", "), "_", " ")+".")
	}
	return out, err
}

func (x *Result) names() []string {
	names := make([]string, len(x.Tables))
	for i, t := range x.Tables {
		names[i] = t.Name
	}
	return names
}

func (x *Result) writeJSON(w io.Writer) error {
	out := map[string]any{
		"title": x.Title, "profile": x.Profile, "ranks": x.Ranks, "seed": x.Seed, "failures": append([]string{}, x.Failures...),
		"checked": x.Checked, "end_ns": report.ExactNanoseconds(x.End), "notes": append([]string{}, x.Notes...),
	}
	if x.Origin != nil {
		out["provenance"] = x.Origin
	}
	if x.Incomplete {
		out["incomplete"] = true
	}
	if x.Runs > 0 {
		// each run may have its own
		for _, one := range []string{"profile", "ranks", "seed", "end_ns"} {
			delete(out, one)
		}
		out["runs"] = x.Runs
	}
	for _, t := range x.Tables {
		var rows bytes.Buffer
		if err := t.Write(&rows, report.JSONFormat); err != nil {
			return err
		}
		out[t.Name] = json.RawMessage(rows.Bytes())
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	sealed, err := seal.Object(text.Bytes(), x.Cut)
	if err != nil {
		return err
	}
	_, err = w.Write(sealed)
	return err
}

// SetEnd sets the time at which the run ended, as in JSON: nanoseconds.
func (x *Result) SetEnd(end json.RawMessage) error {
	v, err := report.Column{Name: "end", Unit: "ns", Kind: report.Duration}.Decode(end)
	if t, is := v.(sim.Time); is {
		x.End = t
	}
	return err
}
