package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Waterfall goes from one profile to another and changes one group of
// parameters at a time, to show what each is worth.
type Waterfall struct {
	From, To string // profiles, by name or file
	Steps    []WaterfallStep
	Record   *provenance.Record // of the results

	sweep     *Sweep
	ends      *Sweep   // the sweep over the two profiles alone
	points    []*Point // of ends
	published []string // published numbers beside our values at the ends; set by Run
	cut       bool     // the last steps were not measured; set by Run
}

// WaterfallStep is the device after one more group of parameters has been
// changed. The first step is the device before any.
type WaterfallStep struct {
	Group   string
	Changes []profile.Difference
	Points  []*Point
	Results []*Result // in the order of Points, set by Run
}

// groups are parameters that change together, in the order in which a message
// meets them. A name is a field, or with a final dot a section. A field in no
// group is a group of its own.
var groups = []struct {
	name   string
	fields []string
}{
	{"path through the network", []string{
		"fabric.kind", "fabric.radix", "fabric.dims", "fabric.exanest.", "fabric.topology", "fabric.wire", "fabric.switch_wire", "fabric.switch", "fabric.switch_rate", "fabric.switch_per_link", "fabric.store_and_forward",
	}},
	{"injection of short packets", []string{"fabric.whole_packets", "fabric.mtu", "fabric.header", "fabric.inject_buffer"}},
	{"rate of the link", []string{"fabric.add_gap", "fabric.rate", "fabric.gap"}},
	{"contention in the network", []string{"fabric.no_contention", "fabric.buffer"}},
	{"transport", []string{"transport."}},
	{"faults of the network", []string{"fabric.faults."}},
	{"reception and matching", []string{"nic.receive", "nic.match_header", "nic.match_packet"}},
	{"host memory", []string{"dma.", "hpu.dma_write"}},
	{"address translation", []string{"smmu."}},
	{"processor of the host", []string{"host.", "nic.overhead"}},
	{"contexts", []string{"hpu.cores", "hpu.contexts"}},
	{"egress", []string{"nic.egress_packets"}},
	{"time of handlers", []string{"hpu.charge", "hpu.clock", "hpu.costs", "hpu.dispatch"}},
}

// Waterfall plans the way between two profiles, for the experiment, values and
// overrides of s, but not its profiles. An axis whose values nobody has chosen
// has only its largest, except for series and the last other axis.
func (s *Sweep) Waterfall(from, to string) (*Waterfall, error) {
	if s.Traced != "" {
		return nil, fmt.Errorf("%s: follows one run, a waterfall has many", s.Traced)
	}
	if s.grid.experiment.Device != nil {
		return nil, errors.New("the file names the device, a waterfall goes from one profile to another")
	}
	few := *s
	few.grid, s = s.grid.fewer(), &few
	ends := *s
	ends.Profiles, ends.falls = []string{from, to}, true
	points, err := ends.Points()
	if err != nil {
		return nil, err
	}
	a, err := s.profile(from)
	if err != nil {
		return nil, err
	}
	b, err := s.profile(to)
	if err != nil {
		return nil, err
	}
	changes, err := profile.Diff(a, b)
	if err != nil {
		return nil, err
	}
	w := &Waterfall{From: from, To: to, Record: ends.record, sweep: s, ends: &ends, points: points, Steps: []WaterfallStep{{Group: from}}}
	changes = slices.DeleteFunc(changes, s.fixes)
	for _, g := range groups {
		var these []profile.Difference
		changes = slices.DeleteFunc(changes, func(d profile.Difference) bool {
			belongs := slices.ContainsFunc(g.fields, func(f string) bool {
				return d.Path == f || strings.HasSuffix(f, ".") && strings.HasPrefix(d.Path, f)
			})
			if belongs {
				these = append(these, d)
			}
			return belongs
		})
		if len(these) > 0 {
			w.Steps = append(w.Steps, WaterfallStep{Group: g.name, Changes: these})
		}
	}
	for _, d := range changes {
		w.Steps = append(w.Steps, WaterfallStep{Group: d.Path, Changes: []profile.Difference{d}})
	}
	return w, w.plan()
}

// fixes reports whether an axis or override of the sweep sets the field.
func (s *Sweep) fixes(d profile.Difference) bool {
	if slices.ContainsFunc(s.grid.experiment.Axes, func(a Axis) bool { return a.Field == d.Path }) {
		return true
	}
	return slices.ContainsFunc(s.Overrides, func(o string) bool {
		path, _, _ := strings.Cut(o, "=")
		return strings.TrimSpace(path) == d.Path
	})
}

// plan lists the points of every step. A group that makes no valid device alone
// changes together with the next.
func (w *Waterfall) plan() error {
	at := *w.sweep
	at.Profiles = []string{w.From}
	for i := 0; i < len(w.Steps); i++ {
		step := &w.Steps[i]
		more := slices.Clip(at.more)
		for _, d := range step.Changes {
			more = append(more, d.Path+"="+d.To)
		}
		trial := at
		trial.more = more
		var err error
		step.Points, err = trial.Points()
		if err == nil && len(step.Points) != len(w.Steps[0].Points) {
			return fmt.Errorf("on the way from %s to %s, after %s: %d points, %d at the beginning", w.From, w.To, step.Group, len(step.Points), len(w.Steps[0].Points))
		}
		switch {
		case err == nil:
			at = trial
		case i == 0 || i == len(w.Steps)-1:
			return fmt.Errorf("on the way from %s to %s, after %s: %w", w.From, w.To, step.Group, err)
		default:
			next := &w.Steps[i+1]
			first, _, _ := strings.Cut(step.Group, " … ")
			next.Group, next.Changes = first+" … "+next.Group, append(step.Changes, next.Changes...)
			w.Steps = slices.Delete(w.Steps, i, i+1)
			i--
		}
	}
	return nil
}

// Keep stores results in a folder, as with Sweep.Checkpoint.
func (w *Waterfall) Keep(folder *checkpoint.Folder) { w.sweep.Checkpoint = folder }

// Points is how many measurements Run makes.
func (w *Waterfall) Points() int { return len(w.Steps) * len(w.Steps[0].Points) }

// Run makes the measurements. done is the same as in Sweep.Run. If the context
// ends early, the error is *Unfinished, and Steps keeps the steps whose points
// were all measured.
func (w *Waterfall) Run(ctx context.Context, done func()) error {
	var all []*Point
	for _, s := range w.Steps {
		all = append(all, s.Points...)
	}
	results, err := w.sweep.Run(ctx, all, done)
	n := len(w.Steps[0].Points)
	if u := (*Unfinished)(nil); errors.As(err, &u) {
		results = u.Results
		whole := 0
		for whole < len(w.Steps) && !slices.Contains(results[whole*n:(whole+1)*n], nil) {
			whole++
		}
		w.Steps, w.cut = w.Steps[:whole], true
	} else if err != nil {
		return err
	}
	for i := range w.Steps {
		w.Steps[i].Results = results[i*n : (i+1)*n]
	}
	if err != nil {
		return err
	}
	return w.compare()
}

// compare sets published: the published numbers beside our values at the two
// ends.
func (w *Waterfall) compare() error {
	n := len(w.Steps[0].Points)
	if len(w.points) != 2*n {
		return nil // other points at the ends than in the steps
	}
	last := w.Steps[len(w.Steps)-1].Results
	results := make([]*Result, 2*n)
	for i, p := range w.points {
		of := w.Steps[0].Results
		if i >= n {
			of = last
		}
		results[i] = &Result{Point: p, Values: of[i%n].Values, used: of[i%n].used}
	}
	t, err := w.ends.Table(results)
	if err != nil {
		return err
	}
	w.published = t.Comparisons()
	return nil
}

// column is the column of the value that the waterfall follows.
func (w *Waterfall) column() report.Column {
	c := w.sweep.grid.experiment.value()
	c.Scale = "waterfall"
	return c
}

// measured returns the value of point i after a step, and its change in the
// step. nil: there is none.
func (w *Waterfall) measured(step, i int) (value, change any) {
	name := w.column().Name
	value = w.Steps[step].Results[i].Values[name]
	if step > 0 {
		change = less(value, w.Steps[step-1].Results[i].Values[name])
	}
	return value, change
}

// less returns a - b for two values of a column. nil: one is missing.
func less(a, b any) any {
	switch a := a.(type) {
	case sim.Time:
		if b, is := b.(sim.Time); is {
			return a - b
		}
	case float64:
		if b, is := b.(float64); is {
			return a - b
		}
	}
	x, ok := Magnitude(a)
	if y, known := Magnitude(b); ok && known {
		return int64(x - y)
	}
	return nil
}

// difference makes the column for changes of another column.
func difference(of report.Column, name string) report.Column {
	of.Name = name
	if of.Kind == report.Share || of.Kind == report.Change {
		of.Kind = report.Points
	}
	return of
}

// Table is the long form, for programs: a row for each step and point.
func (w *Waterfall) Table() (*report.Table, error) {
	e := w.sweep.grid.experiment
	t := report.New(append(e.WaterfallColumns(), provenance.Columns()...)...)
	var all []*Result
	for _, s := range w.Steps {
		all = append(all, s.Results...)
	}
	w.Record.Unused = unusedIn(w.sweep, all)
	t.Origin = w.Record
	for i, p := range w.Steps[0].Points {
		for k, s := range w.Steps {
			v, c := w.measured(k, i)
			device, err := provenance.NewProfile(s.Points[i].Profile)
			if err != nil {
				return nil, err
			}
			row := []any{e.Name, w.From, w.To}
			for _, axis := range e.rows() {
				row = append(row, p.values[axis])
			}
			row = append(row, p.series(), k, s.Group, s.changes(), v, c)
			t.Add(append(row, w.Record.Row(&device, p.handlers())...)...)
		}
	}
	return t, nil
}

// WaterfallColumns are the columns of the table of a waterfall, without
// provenance.
func (e *Experiment) WaterfallColumns() []report.Column {
	value := e.value()
	value.Scale = "waterfall"
	change := difference(value, "change")
	value.Help = "what the experiment measures, after the step"
	change.Help = "value after the step less that before it: what the group of parameters is worth; empty in the first row"
	columns := []report.Column{
		{Name: nameColumn, Help: "the experiment: what was measured; its manual says how"},
		{Name: "from", Help: "profile at which the way begins"},
		{Name: "to", Help: "profile at which it ends"},
	}
	for _, i := range e.rows() {
		columns = append(columns, e.Axes[i].column())
	}
	columns = append(columns,
		report.Column{Name: "series", Help: "values of the other axes, such as the mode"},
		report.Column{Name: "step", Kind: report.Count, Help: "from 0, the first profile as it is"},
		report.Column{Name: "group", Help: "parameters that the step changes"},
		report.Column{Name: "changes", Help: "their values before and after"},
		value, change,
	)
	return columns
}

func (s *WaterfallStep) changes() string {
	list := make([]string, len(s.Changes))
	for i, d := range s.Changes {
		list[i] = d.String()
	}
	return strings.Join(list, "; ")
}

// Summary is the form for people: a line for each step. For every series it has
// the value, and its change in the step.
func (w *Waterfall) Summary() *report.Table {
	rows, series, places := w.layout()
	value := w.column()
	if value.Kind == report.Duration {
		value.Kind = report.Count // whole nanoseconds
		value.Unit = "ns"
	}
	columns := make([]report.Column, 0, len(rows)+1+2*len(series))
	for _, axis := range rows {
		columns = append(columns, w.sweep.grid.experiment.Axes[axis].column())
	}
	columns = append(columns, report.Column{Name: "step"})
	for _, name := range series {
		of := value
		of.Name = name
		change := difference(value, "Δ "+name)
		change.Scale = "change"
		columns = append(columns, of, change)
	}
	saved := w.column().Kind == report.Duration && len(series) > 1
	if saved {
		for _, name := range series[:len(series)-1] {
			columns = append(columns, report.Column{Name: "saved of " + name, Kind: report.Share, Scale: "saved"})
		}
	}
	t := report.New(columns...)
	t.Origin = w.Record
	for _, place := range places {
		for k := range w.Steps {
			t.Add(w.line(k, rows, place, saved)...)
		}
	}
	return t
}

// layout returns the axes with a column of the summary, the names of the
// series, and the lines of a step: for each line the points, one for each
// series.
func (w *Waterfall) layout() (rows []int, series []string, places [][]int) {
	e := w.sweep.grid.experiment
	rows = slices.DeleteFunc(e.rows(), func(i int) bool { return e.Axes[i].Fixed() || w.sweep.grid.quiet(i) })
	at := map[string]int{}
	for i, p := range w.Steps[0].Points {
		name := p.series()
		if !slices.Contains(series, name) {
			series = append(series, name)
		}
		where := p.label(e.rows())
		if _, known := at[where]; !known {
			at[where] = len(places)
			places = append(places, nil)
		}
		for len(places[at[where]]) < slices.Index(series, name) {
			places[at[where]] = append(places[at[where]], -1) // this series has no such point
		}
		places[at[where]] = append(places[at[where]], i)
	}
	for i := range places {
		for len(places[i]) < len(series) {
			places[i] = append(places[i], -1)
		}
	}
	return rows, series, places
}

// line makes a line of the summary: the values and changes of a step at the
// points of a place.
func (w *Waterfall) line(step int, rows, place []int, saved bool) (line []any) {
	s := &w.Steps[step]
	some := place[slices.IndexFunc(place, func(i int) bool { return i >= 0 })]
	for _, axis := range rows {
		line = append(line, s.Points[some].values[axis])
	}
	line = append(line, s.Group)
	for _, i := range place {
		if i < 0 {
			line = append(line, nil, nil)
			continue
		}
		v, c := w.measured(step, i)
		line = append(line, rounded(v), rounded(c))
	}
	if !saved {
		return line
	}
	name := w.column().Name
	last := place[len(place)-1]
	for _, i := range place[:len(place)-1] {
		var share any
		if i >= 0 && last >= 0 {
			base, _ := Magnitude(s.Results[i].Values[name])
			own, _ := Magnitude(s.Results[last].Values[name])
			share = divided(own, base, func(q float64) float64 { return 1 - q })
		}
		line = append(line, share)
	}
	return line
}

// rounded converts a time to whole nanoseconds.
func rounded(v any) any {
	if t, is := v.(sim.Time); is {
		return int64(math.Round(t.Nanoseconds()))
	}
	return v
}

// Notes explain the steps.
func (w *Waterfall) Notes() []string {
	last := ", the last is " + w.To
	if w.cut {
		last = ", the steps are on the way to " + w.To
	}
	notes := []string{fmt.Sprintf("The first line is %s as it is%s. Each step changes, besides what the steps above it have:", w.From, last)}
	for _, s := range w.Steps[1:] {
		notes = append(notes, fmt.Sprintf("  %s: %s", s.Group, s.changes()))
	}
	if all := w.sweep.grid.everywhere(); all != "" {
		notes = append(notes, all)
	}
	return slices.Concat(notes, w.Record.UnusedNotes(), w.published)
}
