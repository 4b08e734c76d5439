package scenario

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// table is a table that a result may have.
type table struct {
	experiment.Detail

	rows func(*run) experiment.Rows
}

// tables are the possible tables, in the order of a result.
func tables() []table {
	return []table{
		{lab.TableOf[latencyRow]("latency", "Latencies"), (*run).latencyRows},
		{breakdownDetail(), (*run).breakdownRows},
		{statsDetail(), (*run).statsRows},
		{lab.TableOf[stateRow]("state", "HPU memory at the end"), (*run).stateRows},
		{lab.TableOf[memoryRow]("memory", "Host memory at the end"), (*run).memoryRows},
		{lab.TableOf[eventRow]("events", "Events"), (*run).eventRows},
		{lab.TableOf[logRow]("log", "What handlers logged"), func(r *run) experiment.Rows { return lab.RowsOf(r.logs) }},
	}
}

type latencyRow struct {
	Rank     int      `column:"rank" help:"Rank."`
	Interval string   `column:"interval" help:"Name of the measurement."`
	Samples  int      `column:"samples" help:"How often it was measured."`
	Min      sim.Time `column:"min" scale:"latency" help:"Shortest sample."`
	Median   sim.Time `column:"median" scale:"latency" help:"Middle sample; of an even number the lower of two."`
	Mean     sim.Time `column:"mean" scale:"latency" help:"Mean of all samples, to the picosecond below."`
	Max      sim.Time `column:"max" scale:"latency" help:"Longest sample."`
}

func (r *run) latencyRows() experiment.Rows {
	var list []latencyRow
	for rank := range r.states {
		for _, l := range r.states[rank].latencies {
			sorted := slices.Sorted(slices.Values(l.samples))
			n := len(sorted)
			list = append(list, latencyRow{rank, l.name, n, sorted[0], sorted[(n-1)/2], mean(sorted), sorted[n-1]})
		}
	}
	return lab.RowsOf(list)
}

// breakdownDetail is the table of where the time went.
func breakdownDetail() experiment.Detail {
	d := lab.TableOf[breakdownRow]("breakdown", "Where the time went")
	d.Zeros = len(d.Columns) // behind what tells rows apart
	for p := range breakdown.Parts {
		d.Columns = append(d.Columns, report.Column{
			Name: "in_" + p.String(), Unit: "ns", Kind: report.Duration, Scale: "breakdown", Help: "The part of the mean in which this happened on the way to its end: " + p.Help() + ".",
		})
	}
	return d
}

// statsDetail is the table of what the ranks counted.
func statsDetail() experiment.Detail {
	d := experiment.Detail{Name: "stats", Title: "What the ranks counted", Zeros: 1, Columns: []report.Column{{Name: "rank", Kind: report.Count, Help: "Rank."}}}
	for _, s := range stats {
		d.Columns = append(d.Columns, report.Column{Name: s.name, Kind: s.kind, Help: s.help})
	}
	d.Columns = append(d.Columns, report.Column{
		Name: "host_cpu", Unit: "ns", Kind: report.Duration,
		Help: "Time of all cores, posting, computing, copying and looking at completions.",
	})
	return d
}

func (r *run) statsRows() (rows experiment.Rows) {
	for _, rank := range must(r.some(r.output.Stats, nil, r.env)) {
		row := []any{rank}
		for _, s := range stats {
			row = append(row, s.count(r, rank))
		}
		rows = append(rows, append(row, r.Cluster.Node(rank).Stats().CPUBusy))
	}
	return rows
}

type stateRow struct {
	Rank   int     `column:"rank" help:"Rank."`
	Entry  string  `column:"entry" help:"Entry whose handlers use the memory."`
	Offset int64   `column:"offset" help:"Where in the HPU memory, bytes."`
	Field  *string `column:"field" help:"Name of the field."`
	Type   *string `column:"type" help:"Type of the field."`
	Value  *string `column:"value" help:"The value."`
	Hex    string  `column:"hex" help:"The bytes, lowest address first."`
}

func (r *run) stateRows() experiment.Rows {
	var list []stateRow
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
					own := hex.EncodeToString(b[f.Offset : f.Offset+f.Field.Type.Size()])
					list = append(list, stateRow{rank, o.Of, f.Offset, &f.Name, new(string(f.Field.Type)), new(f.Text(b)), own})
				}
			}
			if !in.plan.layout.known() {
				dump(b, 0, func(off int64, row string) {
					list = append(list, stateRow{Rank: rank, Entry: o.Of, Offset: off, Hex: row})
				})
			}
		}
	}
	return lab.RowsOf(list)
}

// must returns ranks that the plan has already checked.
func must(ranks []int, err error) []int {
	if err != nil {
		panic("scenario: ranks that were checked: " + err.Error())
	}
	return ranks
}

// dumpBytes is the number of bytes in a row of a hexadecimal dump.
const dumpBytes = 16

func dump(b []byte, from int64, row func(off int64, row string)) {
	for at := 0; at < len(b); at += dumpBytes {
		row(from+int64(at), fmt.Sprintf("% x", b[at:min(at+dumpBytes, len(b))]))
	}
}

type memoryRow struct {
	Rank   int    `column:"rank" help:"Rank."`
	Memory string `column:"memory" help:"Entry or buffer."`
	Offset int64  `column:"offset" help:"Where in it, bytes."`
	Hex    string `column:"hex" help:"The bytes, lowest address first."`
}

func (r *run) memoryRows() experiment.Rows {
	var list []memoryRow
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
			dump(r.states[rank].view(s).Snapshot(), s.off, func(off int64, row string) { list = append(list, memoryRow{rank, o.Of, off, row}) })
		}
	}
	return lab.RowsOf(list)
}

type eventRow struct {
	Time      sim.Time `column:"time" help:"When the event was posted, since the beginning of the run."`
	Rank      int      `column:"rank" help:"Rank."`
	Event     string   `column:"event" help:"Type of the event."`
	Of        string   `column:"of" help:"Entry, or step that posted the operation."`
	From      *int     `column:"from" help:"Rank of the initiator, at the target."`
	Bytes     *uint64  `column:"bytes,size" help:"Bytes that were moved."`
	Requested *uint64  `column:"requested_bytes,size" help:"Bytes that were asked for."`
	MatchBits *uint64  `column:"match_bits,hex" help:"Match bits of the request."`
	HdrData   *uint64  `column:"hdr_data,hex" help:"64 bits of the initiator."`
	Result    string   `column:"result" help:"OK, or why it failed."`
}

func (r *run) eventRows() experiment.Rows {
	var list []eventRow
	for i := range r.Events {
		e := &r.Events[i]
		row := eventRow{Time: e.At, Rank: e.Rank, Event: e.Type.String(), Of: r.source(e), Result: e.Fail.String()}
		switch e.Type {
		case portals.EventSend, portals.EventAck, portals.EventReply:
			row.Bytes = &e.MLength
		case portals.EventLink, portals.EventAutoUnlink, portals.EventAutoFree, portals.EventPTDisabled:
		default:
			row.From, row.Bytes, row.Requested, row.MatchBits, row.HdrData = new(int(e.Initiator.NID)), &e.MLength, &e.RLength, &e.MatchBits, &e.HdrData
		}
		list = append(list, row)
	}
	return lab.RowsOf(list)
}

// logRow is a line that a handler has logged.
type logRow struct {
	Time   sim.Time `column:"time" help:"When the handler logged the line."`
	Rank   int      `column:"rank" help:"Rank."`
	Module string   `column:"module" help:"Module of the handler."`
	Line   string   `column:"line" help:"What it logged."`
}
