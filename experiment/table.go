package experiment

import (
	"fmt"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Columns describe a result of any benchmark.
func Columns() []report.Column {
	return []report.Column{
		{Name: "benchmark", Help: "what was measured; see spinsim compare --help"},
		{Name: "profile", Help: "the device and network simulated"},
		{Name: "mode", Help: "who does the work: rdma (the host), p4 (triggered operations of the NIC), spin-store (handlers, when a message is complete), spin-stream (handlers, packet by packet)"},
		{Name: "ranks", Kind: report.Count, Help: "nodes taking part"},
		{Name: "bytes", Kind: report.Size, Help: "size of the message; in benchmark hpus, of a packet"},
		{Name: "latency", Unit: "ns", Kind: report.Duration, Help: "what the benchmark defines: half a round trip for pingpong, else from the call to the last host that has seen the result"},
		{Name: "host_cpu", Unit: "ns", Kind: report.Duration, Help: "time that cores of all ranks were busy: posting, matching, copying, and looking at completions that were there; spinning while there are none is not counted"},
		{Name: "host_memory", Unit: "bytes", Kind: report.Size, Help: "bytes through the host memories of all ranks: DMA in both directions, and reads and writes of the cores"},
		{Name: "handler_calls", Kind: report.Count, Help: "handlers that ran, on all ranks"},
		{Name: "handler_cycles", Kind: report.Count, Help: "cycles charged to them"},
		{Name: "speedup", Kind: report.Ratio, Help: "latency of rdma divided by latency, at the same profile, ranks and bytes; empty if rdma was not measured"},
		{Name: savedRDMA, Kind: report.Share, Help: "1 - latency / latency of rdma, likewise"},
		{Name: savedP4, Kind: report.Share, Help: "1 - latency / latency of p4, likewise"},
	}
}

// Columns that publications give numbers for.
const (
	savedRDMA    = "saved_vs_rdma"
	savedP4      = "saved_vs_p4"
	handlerLimit = "handler_limit"
)

// WorkColumns are the columns that benchmark hpus has besides.
func WorkColumns() []report.Column {
	return []report.Column{
		{Name: "hpus", Kind: report.Count, Each: "HPUs", Help: "benchmark hpus: handler processing units of the device"},
		{Name: "handler", Unit: "ns", Kind: report.Duration, Help: "benchmark hpus: time of one payload handler"},
		{Name: "rate", Unit: "Mpps", Kind: report.Number, Scale: "rate", Help: "benchmark hpus: million packets handled per second, measured between the first and the last"},
		{Name: "littles_law", Unit: "Mpps", Kind: report.Number, Scale: "rate", Help: "benchmark hpus: million packets per second, the smaller of the arrival rate, 1/max(g, G*bytes), and hpus/handler"},
		{Name: "littles_law_deviation", Kind: report.Change, Help: "benchmark hpus: (rate - littles_law) / littles_law"},
		{Name: "hpus_needed", Kind: report.Number, Help: "benchmark hpus: HPUs that keep up with the arrival rate, handler time x arrival rate"},
		{Name: handlerLimit, Unit: "ns", Kind: report.Duration, Help: "benchmark hpus: longest handler with which the HPUs keep up with the arrival rate, hpus x max(g, G*bytes)"},
	}
}

// Table makes the table of a sweep's results.
func (s *Sweep) Table(results []*Result) (*report.Table, error) {
	columns := Columns()
	if s.Benchmark == hpus {
		columns = append(columns, WorkColumns()...)
	}
	t := report.New(append(columns, provenance.Columns()...)...)
	t.Title = s.Benchmark.Name + ": " + s.Benchmark.Short
	t.Origin = s.record
	recorded := make(map[*profile.Profile]*provenance.Profile)
	for _, r := range results {
		p := r.Point.Profile
		if recorded[p] == nil {
			one, err := provenance.NewProfile(p)
			if err != nil {
				return nil, err
			}
			recorded[p] = &one
		}
		row := []any{
			r.Benchmark, p.Name, r.Point.Mode, r.Point.Ranks, r.Point.Bytes, r.Latency, r.Stats.CPUBusy, r.Stats.HostMemoryBytes,
			r.Stats.HandlerCalls, r.Stats.HandlerCycles, speedup(results, r), saved(results, r, ModeRDMA), saved(results, r, ModeP4),
		}
		if w := r.Work; s.Benchmark == hpus {
			row = append(row, w.HPUs, w.Handler, w.Rate/1e6, w.Predicted/1e6, (w.Rate-w.Predicted)/w.Predicted, w.Needed, w.Limit)
		}
		t.Add(append(row, s.record.Row(recorded[p], s.handlers(r.Point.Mode))...)...)
	}
	return t, t.SetPublished(s.published())
}

// notMeasured is the name of no profile: published numbers of it stand in no row, but their columns are there.
const notMeasured = ""

// published are the numbers that the publication gives for what the sweep measures: none for a profile that was changed or for other
// handlers.
func (s *Sweep) published() (list []report.Published) {
	for _, p := range s.Benchmark.Published {
		for i, is := range p.At {
			if is.Column == "profile" && !s.asPublished(is.Value) {
				p.At = append(p.At[:i:i], report.Is{Column: "profile", Value: notMeasured})
			}
		}
		list = append(list, p)
	}
	return list
}

// asPublished reports whether a profile runs as it is.
func (s *Sweep) asPublished(name any) bool {
	if s.Handler != nil {
		return false
	}
	for i := range s.record.Profiles {
		if p := &s.record.Profiles[i]; p.Name == name && p.Embedded && len(p.Overrides) == 0 {
			return true
		}
	}
	return false
}

// speedup is the latency of the baseline at the same point divided by that of r, or nil without a baseline.
func speedup(results []*Result, r *Result) any {
	base := find(results, r.Point.Profile, ModeRDMA, r.Point.Ranks, r.Point.Bytes)
	if base == nil || r.Latency == 0 {
		return nil
	}
	return float64(base.Latency) / float64(r.Latency)
}

// saved is the share of the time of another mode at the same point that r saves, or nil if that was not measured.
func saved(results []*Result, r *Result, mode string) any {
	base := find(results, r.Point.Profile, mode, r.Point.Ranks, r.Point.Bytes)
	if base == nil || base == r || base.Latency == 0 {
		return nil
	}
	return 1 - float64(r.Latency)/float64(base.Latency)
}

func find(results []*Result, p *profile.Profile, mode string, ranks, bytes int) *Result {
	for _, r := range results {
		if q := r.Point; q.Mode == mode && q.Profile.Name == p.Name && q.Ranks == ranks && q.Bytes == bytes {
			return r
		}
	}
	return nil
}

// Answer says in sentences what a sweep has found.
func (s *Sweep) Answer(results []*Result) []string {
	if s.Benchmark == hpus {
		return s.workAnswer(results)
	}
	var lines []string
	for _, name := range profileNames(results) {
		var last *Result
		for _, r := range results {
			if r.Point.Profile.Name == name && (last == nil || r.Point.Ranks > last.Point.Ranks || r.Point.Ranks == last.Point.Ranks && r.Point.Bytes >= last.Point.Bytes) {
				last = r
			}
		}
		for _, bytes := range extremes(results) {
			best := fastest(results, name, last.Point.Ranks, bytes)
			base := find(results, last.Point.Profile, ModeRDMA, last.Point.Ranks, bytes)
			if best == nil || base == nil {
				continue
			}
			if best == base {
				lines = append(lines, fmt.Sprintf("%s, %d ranks, %v: rdma is the fastest, %s.", name, last.Point.Ranks, sim.Size(bytes), short(base.Latency)))
				continue
			}
			lines = append(lines, fmt.Sprintf("%s, %d ranks, %v: %s takes %s, rdma %s: %.2f times as fast.", name, last.Point.Ranks, sim.Size(bytes),
				best.Point.Mode, short(best.Latency), short(base.Latency), float64(base.Latency)/float64(best.Latency)))
		}
	}
	return lines
}

// short is a time for a sentence.
func short(t sim.Time) string {
	if t < sim.Microsecond {
		return fmt.Sprintf("%.0f ns", t.Nanoseconds())
	}
	return fmt.Sprintf("%.2f µs", t.Microseconds())
}

func (s *Sweep) workAnswer(results []*Result) []string {
	worst := 0.0
	for _, r := range results {
		d := (r.Work.Rate - r.Work.Predicted) / r.Work.Predicted
		worst = max(worst, d, -d)
	}
	return []string{fmt.Sprintf("The rates differ from Little's law by %.2f%% at most.", 100*worst)}
}

func profileNames(results []*Result) (names []string) {
	seen := map[string]bool{}
	for _, r := range results {
		if !seen[r.Point.Profile.Name] {
			seen[r.Point.Profile.Name] = true
			names = append(names, r.Point.Profile.Name)
		}
	}
	return names
}

// extremes are the smallest and the largest size measured.
func extremes(results []*Result) []int {
	least, most := results[0].Point.Bytes, results[0].Point.Bytes
	for _, r := range results {
		least, most = min(least, r.Point.Bytes), max(most, r.Point.Bytes)
	}
	if least == most {
		return []int{least}
	}
	return []int{least, most}
}

func fastest(results []*Result, profile string, ranks, bytes int) (best *Result) {
	for _, r := range results {
		if q := r.Point; q.Profile.Name == profile && q.Ranks == ranks && q.Bytes == bytes && (best == nil || r.Latency < best.Latency) {
			best = r
		}
	}
	return best
}

// Summary lays the latencies out for reading: a line for each point, a column for each mode.
func (s *Sweep) Summary(t *report.Table) (*report.Table, error) {
	if s.Benchmark == hpus {
		return t.Select("profile", "bytes", "hpus", "handler", "rate", "littles_law", "littles_law_deviation", "hpus_needed", handlerLimit)
	}
	p := report.Pivot{Rows: []string{"profile", "ranks", "bytes"}, Series: "mode", Value: "latency"}
	if s.Benchmark.FixedRanks {
		p.Rows = []string{"profile", "bytes"}
	}
	for _, m := range s.Modes {
		if m == ModeRDMA {
			p.Versus = ModeRDMA
		}
	}
	return t.Pivot(p)
}

// Plot says how to draw a sweep: latency against the parameter that varies most, or rate against handler time. A published saving is
// drawn as the latency that it would be next to our latency of the other mode; a published longest handler, where Little's law has it.
func (s *Sweep) Plot() report.Plot {
	p := report.Plot{Title: s.Benchmark.Name + ": " + s.Benchmark.Short, Series: "mode", Facet: "profile", X: "bytes", Y: "latency", LogX: true, LogY: true}
	switch {
	case s.Benchmark == hpus:
		p.X, p.Y, p.Series, p.Facet = "handler", "rate", "hpus", "profile,bytes"
	case len(s.Ranks) > 1 && len(s.Ranks) >= len(s.Sizes):
		p.X, p.Facet = "ranks", "profile,bytes"
	case len(s.Ranks) > 1:
		p.Facet = "profile,ranks"
	}
	type places = map[string]func(value func(column string) float64, published float64) (x, y float64)
	p.Place = places{
		handlerLimit: func(value func(string) float64, published float64) (x, y float64) {
			return published, 1e3 * value("hpus") / value(handlerLimit) // packets per ns to Mpps
		},
	}
	for _, column := range []string{savedRDMA, savedP4} {
		p.Place[column] = func(value func(string) float64, published float64) (x, y float64) {
			return value(p.X), value("latency") * (1 - published) / (1 - value(column))
		}
	}
	return p
}

// Notes say how to read the table of a sweep.
func (s *Sweep) Notes() []string {
	return []string{"Every byte that arrived was compared with what was sent. Columns: spinsim help columns."}
}
