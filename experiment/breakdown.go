package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// BreakdownParts are the columns that add up to the time of an operation.
func BreakdownParts() []report.Column {
	list := make([]report.Column, breakdown.Parts)
	for p := range breakdown.Parts {
		list[p] = report.Column{Name: "in_" + p.String(), Unit: "ns", Kind: report.Duration, Scale: "part", Help: p.Help()}
	}
	return list
}

// useColumns show how busy the busiest node was, and quantiles of the times of
// the operations.
func useColumns() []report.Column {
	quantile := func(percent int) report.Column {
		return report.Column{
			Name: fmt.Sprintf("op_p%d", percent), Unit: "ns", Kind: report.Duration, Scale: "op",
			Help: fmt.Sprintf("time that %d%% of the operations did not take longer than: nearest rank, the least of the measured times that so many are not above", percent),
		}
	}
	return []report.Column{
		{Name: "op_count", Kind: report.Count, Help: "operations that were measured, whose mean is broken down"},
		quantile(50), quantile(95), quantile(99),
		{Name: "busy_hpus", Kind: report.Share, Help: "share of the measured time in which the processors of handlers computed, HPUs or those of another pool, at the node that had the most to do"},
		{Name: "busy_dma_in", Kind: report.Share, Help: "share of the measured time in which data of messages and handlers crossed the bus to host memory, at such a node"},
		{Name: "busy_dma_out", Kind: report.Share, Help: "likewise from host memory"},
		{Name: "busy_egress", Kind: report.Share, Help: "share of the measured time in which a node's link took packets"},
		{Name: "busy_ingress", Kind: report.Share, Help: "share of the measured time in which packets came in at a node"},
		{Name: "max_hpu_queue", Kind: report.Count, Help: "most handlers of a node that waited for a processor at once in the measured time"},
		{Name: "max_packet_buffer", Kind: report.Size, Help: "most bytes of packets of a node that waited for a payload handler at once"},
		{Name: "max_dma_queue", Kind: report.Count, Help: "most accesses to host memory of a node that waited for the bus at once"},
		{Name: "max_egress_queue", Kind: report.Count, Help: "most packets of a node that were at the NIC and waited for the link at once"},
	}
}

// meanColumn is the column that is divided if the experiment has an Operation.
const meanColumn = "op_mean"

// divided is the column that --breakdown divides; "": none.
func (e *Experiment) divided() string {
	if e.Divided != nil {
		return e.Divided().divided()
	}
	if e.Operation != "" {
		return meanColumn
	}
	return e.Followed
}

// Divides reports whether the experiment has a breakdown.
func (e *Experiment) Divides() bool { return e.divided() != "" }

// BreakdownColumns are the columns that --breakdown adds; nil: there is no
// breakdown.
func (e *Experiment) BreakdownColumns() (list []report.Column) {
	if e.Divided != nil {
		d := e.Divided()
		return slices.Concat(d.Columns, d.BreakdownColumns())
	}
	if !e.Divides() {
		return nil
	}
	if e.Operation != "" {
		list = append(list, report.Column{Name: meanColumn, Unit: "ns", Kind: report.Duration, Scale: "op", Help: "what is divided: " + e.Operation + ". Empty where none has ended"})
	}
	parts := BreakdownParts()
	for i := range parts {
		parts[i].PartOf = e.divided()
	}
	return slices.Concat(list, parts, useColumns())
}

// breakdownParts are the names of BreakdownParts.
func breakdownParts() (names []string) {
	for _, c := range BreakdownParts() {
		names = append(names, c.Name)
	}
	return names
}

// Broken returns the experiment with columns for the parts of the time of its
// operations, a view that shows them, and a Run that follows the operations. It
// is an error if the experiment follows none.
func (e *Experiment) Broken() (*Experiment, error) {
	if e.Divided != nil {
		d := e.Divided()
		if d.Divides() {
			return d.Broken()
		}
		d.broken = true
		return d, nil
	}
	if !e.Divides() {
		if e.Undivided != "" {
			return nil, fmt.Errorf("%s is not divided: %s", e.Name, e.Undivided)
		}
		return nil, fmt.Errorf("%s follows no operation; those that do are %s", e.Name, strings.Join(following(), ", "))
	}
	one := *e
	one.Followed = e.divided()
	one.broken = true
	one.Columns = slices.Concat(e.Columns, e.BreakdownColumns())
	v := &one.View
	course := e.View.Course
	v.Answer = func(results []*Result) []string { return one.broke(results, course) }
	v.Value, v.Parts, v.Place, v.Course = one.Followed, breakdownParts(), nil, false
	if c, found := e.column(v.X); !found || e.axis(v.X) < 0 && !slices.ContainsFunc(e.Axes, func(a Axis) bool { return a.column().Key() == c.Key() }) {
		v.X = ""
	}
	v.Summary = []string{ProfileColumn}
	for i := range e.Axes {
		if a := &e.Axes[i]; !a.Fixed() {
			v.Summary = append(v.Summary, a.column().Name)
		}
	}
	v.Summary = slices.Concat(v.Summary, []string{one.Followed}, v.Parts)
	one.Notes = slices.Clone(e.Notes)
	if e.Operation != "" {
		one.Notes = append(one.Notes, meanColumn+" is "+e.Operation+".")
	}
	one.Notes = append(one.Notes, "The parts add up to "+one.Followed+" exactly; docs/breakdown.md says what each is. Those that no row has are not shown; --all shows them, and how busy the nodes were.")
	one.Run = func(ctx context.Context, p *Point) (Values, error) { return e.follow(ctx, p) }
	one.Published, one.Ledger, one.Caveats = e.Published, e.Ledger, e.Caveats
	return &one, nil
}

// following lists the experiments that follow operations.
func following() (names []string) {
	for _, e := range All() {
		if e.Divides() {
			names = append(names, e.Name)
		}
	}
	return names
}

// follow measures a point and adds the parts of the time of its operations.
func (e *Experiment) follow(ctx context.Context, p *Point) (Values, error) {
	record := breakdown.NewRecord()
	watched := *p
	watched.followed = &followed{record: record, alone: p.Tracer == nil}
	watched.Tracer = breakdown.Follow(record, p.Tracer)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	record.Limit(p.Room, func() { end(&breakdown.FullError{Left: p.Room}) })
	values, err := e.Run(ctx, &watched)
	if full := (*breakdown.FullError)(nil); errors.As(context.Cause(ctx), &full) {
		return nil, full // even if the run ended before it was stopped
	}
	if err != nil {
		return nil, err
	}
	if len(p.done.list) == 0 {
		if e.Operation == "" && values[e.Followed] != nil {
			return nil, fmt.Errorf("%s has measured no operation that could be broken down", e.Name)
		}
		for _, c := range e.BreakdownColumns() {
			values[c.Name] = nil
		}
		return values, nil
	}
	record = watched.followed.record
	if err := p.divide(record, e, values); err != nil {
		return nil, err
	}
	p.used(record, values)
	return values, nil
}

// watched reports whether anything observes the simulation besides Broken.
func (p *Point) watched() bool {
	if p.Links != nil || p.Translator != nil || p.Capture != nil {
		return true
	}
	return p.Tracer != nil && (p.followed == nil || !p.followed.alone)
}

// followed holds what follows a point's simulation.
type followed struct {
	record *breakdown.Record
	alone  bool // no other timeline is drawn
}

// divide sets the values of the parts of the mean operation. They add up to it
// to the picosecond, because each part ends at the rounded sum of the parts so
// far.
func (p *Point) divide(record *breakdown.Record, e *Experiment, values Values) error {
	var all breakdown.Times
	for i := range p.done.list {
		p.done.list[i].divide(record, &all)
	}
	all.Divide(len(p.done.list) * int(p.done.each()))
	if e.Operation != "" {
		values[meanColumn] = all.Sum()
	}
	for i, c := range BreakdownParts() {
		values[c.Name] = all[i]
	}
	if mean, _ := values[e.divided()].(sim.Time); all.Sum() != mean {
		return fmt.Errorf("the parts of %s add up to %v, and it is %v", e.divided(), all.Sum(), mean)
	}
	return nil
}

// divide adds the parts of the time of the operation to all.
func (o *Operation) divide(record *breakdown.Record, all *breakdown.Times) {
	if o.parts != nil {
		all.Add(o.parts)
		return
	}
	record.Path(all, o.Rank, o.Process, o.From, o.To)
}

// used sets the values of useColumns.
func (p *Point) used(record *breakdown.Record, values Values) {
	intervals := make([]breakdown.Interval, len(p.done.list))
	for i, o := range p.done.list {
		intervals[i] = breakdown.Interval{From: o.From, To: o.To}
	}
	pools := []int{p.Profile.HPU.Cores}
	for _, o := range p.Profile.Pools.Processors() {
		pools = append(pools, o.Number)
	}
	u := record.Use(pools, intervals)
	values["busy_hpus"], values["busy_dma_in"], values["busy_dma_out"] = u.Processors, u.In, u.Out
	values["busy_egress"], values["busy_ingress"] = u.Egress, u.Ingress
	values["max_hpu_queue"], values["max_packet_buffer"] = u.Waiting, u.Buffer
	values["max_dma_queue"], values["max_egress_queue"] = u.Transfers, u.EgressPackets
	times := p.done.times()
	values["op_count"] = int64(len(times))
	for _, percent := range []int{50, 95, 99} {
		values[fmt.Sprintf("op_p%d", percent)] = Percentile(times, percent)
	}
}

// broke writes a line for each profile and each value of the series: the
// largest parts of the time at the last point. If x is the time of a run
// (course), it takes the point with the longest time instead.
func (e *Experiment) broke(results []*Result, course bool) (lines []string) {
	last := map[string]*Result{}
	var keys []string
	for _, r := range results {
		key := r.Point.Profile.Name + "\x00" + r.Point.series()
		if last[key] == nil {
			keys = append(keys, key)
		}
		took, _ := r.Values[e.Followed].(sim.Time)
		if before := last[key]; !course || before == nil || before.Values[e.Followed] == nil || took > before.Time(e.Followed) {
			last[key] = r
		}
	}
	named := e.told(results)
	for _, key := range keys {
		r := last[key]
		total, _ := r.Values[e.Followed].(sim.Time)
		if total == 0 {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s, of which %s.", r.Point.Profile.Name, r.Point.label(named), ShortTime(total), largestParts(r, total)))
	}
	return lines
}

// told are the axes that a sentence names: axes that vary, and others that
// could vary and are not quiet.
func (e *Experiment) told(results []*Result) (axes []int) {
	for i := range e.Axes {
		a := &e.Axes[i]
		varies := slices.ContainsFunc(results, func(r *Result) bool { return r.Point.values[i] != results[0].Point.values[i] })
		if varies || !a.Fixed() && !slices.Contains(e.View.Quiet, a.Name) {
			axes = append(axes, i)
		}
	}
	return axes
}

// shown drops the columns of parts that are zero in every row.
func (e *Experiment) shown(t *report.Table, columns []string) (some []string) {
	for _, name := range columns {
		i := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Name == name })
		something := !slices.Contains(e.View.Parts, name)
		for _, row := range t.Rows() {
			something = something || row[i] != sim.Time(0) && row[i] != nil
		}
		if something {
			some = append(some, name)
		}
	}
	return some
}

// mentioned is the least share of a part that a sentence names.
const mentioned = 0.05

// largestParts names the largest part of a time, and the others from mentioned
// on, the largest first.
func largestParts(r *Result, total sim.Time) string {
	names := breakdownParts()
	slices.SortStableFunc(names, func(a, b string) int { return int(min(1, max(-1, r.Time(b)-r.Time(a)))) })
	var parts []string
	for i, name := range names {
		share := float64(r.Time(name)) / float64(total)
		if i > 0 && share < mentioned {
			break
		}
		parts = append(parts, fmt.Sprintf("%.0f%% %s", 100*share, strings.ReplaceAll(strings.TrimPrefix(name, "in_"), "_", " ")))
	}
	return strings.Join(parts, ", ")
}
