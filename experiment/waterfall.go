package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Waterfall is the way from one profile to another, one group of parameters at a time: what is each worth?
type Waterfall struct {
	From, To string // profiles, by name or file
	Steps    []WaterfallStep
	Record   *provenance.Record // what the results are made from
	sweep    *Sweep
}

// WaterfallStep is the device after one more group of parameters has been changed. The first step is the device before any.
type WaterfallStep struct {
	Group   string
	Changes []profile.Difference
	Points  []*Point
	Results []*Result // in the order of Points, set by Run
}

// groups are parameters that are changed together, in the order of a message's way: fields, or with a final dot all of a section. A
// field that none of them names is a group of its own.
var groups = []struct {
	name   string
	fields []string
}{
	{"path through the network", []string{
		"fabric.kind", "fabric.radix", "fabric.dims", "fabric.topology", "fabric.wire", "fabric.switch", "fabric.switch_rate", "fabric.switch_per_link", "fabric.store_and_forward",
	}},
	{"injection of short packets", []string{"fabric.whole_packets", "fabric.mtu", "fabric.header", "fabric.inject_buffer"}},
	{"rate of the link", []string{"fabric.add_gap", "fabric.rate", "fabric.gap"}},
	{"contention in the network", []string{"fabric.no_contention", "fabric.buffer"}},
	{"faults of the network", []string{"fabric.faults."}},
	{"reception and matching", []string{"nic.receive", "nic.match_header", "nic.match_packet"}},
	{"host memory", []string{"dma.", "hpu.dma_write"}},
	{"processor of the host", []string{"host.", "nic.overhead"}},
	{"contexts", []string{"hpu.cores", "hpu.contexts"}},
	{"egress", []string{"nic.egress_packets"}},
	{"time of handlers", []string{"hpu.charge", "hpu.clock", "hpu.costs", "hpu.dispatch"}},
}

// Waterfall plans the way between two profiles for the benchmark, modes, sizes and ranks of s, whose own profiles are not used. Overrides
// of s hold on the whole way.
func (s *Sweep) Waterfall(from, to string) (*Waterfall, error) {
	if s.Traced {
		return nil, errors.New("a trace follows one run, a waterfall has many")
	}
	ends := *s
	ends.Profiles, ends.Falls = []string{from, to}, true
	if _, err := ends.Points(); err != nil {
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
	w := &Waterfall{From: from, To: to, Record: ends.record, sweep: s, Steps: []WaterfallStep{{Group: from}}}
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

// fixes reports whether the sweep itself decides a field.
func (s *Sweep) fixes(d profile.Difference) bool {
	if s.Benchmark == hpus && (d.Path == "hpu.cores" || d.Path == "fabric.mtu") {
		return true
	}
	return slices.ContainsFunc(s.Overrides, func(o string) bool {
		path, _, _ := strings.Cut(o, "=")
		return strings.TrimSpace(path) == d.Path
	})
}

// plan lists the points of every step. Groups that make no device without the next are changed together with it.
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

// Points is how many measurements Run makes.
func (w *Waterfall) Points() int { return len(w.Steps) * len(w.Steps[0].Points) }

// Run makes the measurements; done is as that of Sweep.Run.
func (w *Waterfall) Run(ctx context.Context, done func()) error {
	var all []*Point
	for _, s := range w.Steps {
		all = append(all, s.Points...)
	}
	results, err := w.sweep.Run(ctx, all, done)
	if err != nil {
		return err
	}
	n := len(w.Steps[0].Points)
	for i := range w.Steps {
		w.Steps[i].Results = results[i*n : (i+1)*n]
	}
	return nil
}

// column is the value that a waterfall follows: a latency, or of benchmark hpus a rate in millions of packets per second.
func (w *Waterfall) column() report.Column {
	if w.sweep.Benchmark == hpus {
		return report.Column{Name: "rate", Unit: "Mpps", Kind: report.Number, Scale: "waterfall"}
	}
	return report.Column{Name: "latency", Unit: "ns", Kind: report.Duration, Scale: "waterfall"}
}

// measured returns the value of the i-th point after a step, and its change by the step; nil if there is none before.
func (w *Waterfall) measured(step, i int) (value, change any) {
	r := w.Steps[step].Results[i]
	if w.sweep.Benchmark == hpus {
		if step > 0 {
			change = (r.Work.Rate - w.Steps[step-1].Results[i].Work.Rate) / 1e6
		}
		return r.Work.Rate / 1e6, change
	}
	if step > 0 {
		change = r.Latency - w.Steps[step-1].Results[i].Latency
	}
	return r.Latency, change
}

// Table is the long form for programs: a row for each step and point.
func (w *Waterfall) Table() (*report.Table, error) {
	value := w.column()
	value.Help = "what the benchmark measures, after the step"
	change := value
	change.Name, change.Help = "change", "value after the step less that before it: what the group of parameters is worth; empty in the first row"
	columns := append([]report.Column{
		{Name: "benchmark", Help: "what was measured; see spinsim compare --help"},
		{Name: "from", Help: "profile at which the way begins"},
		{Name: "to", Help: "profile at which it ends"},
		{Name: "ranks", Kind: report.Count, Help: "nodes taking part"},
		{Name: "bytes", Kind: report.Size, Help: "size of the message; in benchmark hpus, of a packet"},
		{Name: "series", Help: "mode; in benchmark hpus, HPUs and handler time"},
		{Name: "step", Kind: report.Count, Help: "from 0, the first profile as it is"},
		{Name: "group", Help: "parameters that the step changes"},
		{Name: "changes", Help: "their values before and after"},
		value, change,
	}, provenance.Columns()...)
	t := report.New(columns...)
	t.Origin = w.Record
	for i, p := range w.Steps[0].Points {
		for k, s := range w.Steps {
			v, c := w.measured(k, i)
			device, err := provenance.NewProfile(s.Points[i].Profile)
			if err != nil {
				return nil, err
			}
			row := []any{w.sweep.Benchmark.Name, w.From, w.To, p.Ranks, p.Bytes, series(p), k, s.Group, s.changes(), v, c}
			t.Add(append(row, w.Record.Row(&device, w.sweep.handlers(p.Mode))...)...)
		}
	}
	return t, nil
}

// series names what is followed from step to step at one size and number of ranks.
func series(p *Point) string {
	if p.Work != nil {
		return fmt.Sprintf("%d HPUs, %v", p.Work.HPUs, p.Work.Handler)
	}
	return p.Mode
}

func (s *WaterfallStep) changes() string {
	list := make([]string, len(s.Changes))
	for i, d := range s.Changes {
		list[i] = d.String()
	}
	return strings.Join(list, "; ")
}

// Summary is the form for people: a line for each step, for every series its value and what the step has changed.
func (w *Waterfall) Summary() *report.Table {
	columns := []report.Column{{Name: "ranks", Kind: report.Count}, {Name: "bytes", Kind: report.Size}, {Name: "step"}}
	per := 0 // series at one size and number of ranks
	first := w.Steps[0].Points
	for per < len(first) && first[per].Ranks == first[0].Ranks && first[per].Bytes == first[0].Bytes {
		value := w.column()
		value.Kind = report.Count // whole nanoseconds, whole thousands of packets per second
		if w.sweep.Benchmark == hpus {
			value.Unit = "kpps"
		}
		value.Name = series(first[per])
		change := value
		change.Name, change.Scale = "Δ "+value.Name, "change"
		columns = append(columns, value, change)
		per++
	}
	saved := w.sweep.Benchmark != hpus && per > 1
	if saved {
		for _, p := range first[:per-1] {
			columns = append(columns, report.Column{Name: fmt.Sprintf("saved of %s", p.Mode), Kind: report.Share, Scale: "saved"})
		}
	}
	t := report.New(columns...)
	t.Origin = w.Record
	for from := 0; from < len(first); from += per {
		for k, s := range w.Steps {
			row := []any{first[from].Ranks, first[from].Bytes, s.Group}
			for i := from; i < from+per; i++ {
				v, c := w.measured(k, i)
				row = append(row, rounded(v), rounded(c))
			}
			if saved {
				last := float64(s.Results[from+per-1].Latency)
				for i := from; i < from+per-1; i++ {
					row = append(row, 1-last/float64(s.Results[i].Latency))
				}
			}
			t.Add(row...)
		}
	}
	return t
}

// rounded makes whole nanoseconds of a time, and whole kpps of a rate in Mpps.
func rounded(v any) any {
	switch v := v.(type) {
	case sim.Time:
		return int64(math.Round(v.Nanoseconds()))
	case float64:
		return int64(math.Round(v * 1e3))
	}
	return v
}

// Notes explain the steps.
func (w *Waterfall) Notes() []string {
	notes := []string{fmt.Sprintf("The first line is %s as it is, the last is %s. Each step changes, besides what the steps above it have:", w.From, w.To)}
	for _, s := range w.Steps[1:] {
		notes = append(notes, fmt.Sprintf("  %s: %s", s.Group, s.changes()))
	}
	return notes
}
