package reports

import (
	"bytes"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/page"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Sweep makes a section from the results of a sweep with this many points.
func Sweep(s *experiment.Sweep, results []*experiment.Result, points int) (*Result, error) {
	all, err := s.Table(results)
	if err != nil {
		return nil, err
	}
	seen, err := s.Summary(all)
	if err != nil { // rows for comparison are missing
		seen = all
	}
	out := &Result{Deviations: all.Deviations()}
	out.Title = all.Title
	out.Notes = s.Notes(results)
	if len(results) < points {
		out.Answer = []string{fmt.Sprintf("Ended before all was done: %d of %d points were measured.", len(results), points)}
	} else {
		out.Answer = s.Answer(results)
		out.plot(s, all)
	}
	out.Tables = append(out.Tables, page.Table{Caption: s.Experiment().Short, Grid: seen.Grid(false)})
	for _, f := range all.Further {
		if f.Len() > 0 {
			out.Tables = append(out.Tables, page.Table{Caption: f.Title, Grid: f.Grid(false), Folded: true})
		}
	}
	if len(out.Deviations) > 0 {
		out.Tables = append(out.Tables, page.Table{Caption: "Beside the publication", Grid: report.DeviationGrid(out.Deviations)})
	}
	out.Tables = append(out.Tables, page.Table{Caption: "All columns", Grid: all.Grid(true), Folded: true})
	return out, nil
}

// plot draws the results. If they cannot be drawn, it adds a note.
func (r *Result) plot(s *experiment.Sweep, all *report.Table) {
	p := s.Plot()
	picture, err := all.SVG(p)
	if err != nil {
		r.Notes = append(r.Notes, "There is no picture: "+err.Error()+".")
		return
	}
	alt := fmt.Sprintf("Plot: %s over %s; the table below has the numbers", p.Y, p.X)
	r.Plots = append(r.Plots, page.Plot{SVG: picture, Alt: alt})
}

// Waterfall makes a section from a waterfall, the steps from one profile to
// another.
func Waterfall(w *experiment.Waterfall) (*Result, error) {
	t, err := w.Table()
	if err != nil {
		return nil, err
	}
	out := &Result{}
	out.Title = fmt.Sprintf("%s, from %s to %s: what each group of parameters is worth", w.Experiment().Name, w.From, w.To)
	out.Notes = w.Notes()
	out.Tables = []page.Table{
		{Caption: "Waterfall: one group of parameters at a time", Grid: w.Summary().Grid(false)},
		{Caption: "All columns", Grid: t.Grid(true), Folded: true},
	}
	return out, nil
}

// OfSweep is Sweep with the document of the same results, and with the origin
// that the document records.
func OfSweep(program string, s *experiment.Sweep, results []*experiment.Result, points int) (*Result, error) {
	out, err := Sweep(s, results, points)
	if err != nil {
		return nil, err
	}
	t, err := s.Table(results)
	if err != nil {
		return nil, err
	}
	return out, out.complete(program, t, s.Record(), s.Experiment())
}

// OfWaterfall is OfSweep for a waterfall.
func OfWaterfall(program string, w *experiment.Waterfall) (*Result, error) {
	out, err := Waterfall(w)
	if err != nil {
		return nil, err
	}
	t, err := w.Table()
	if err != nil {
		return nil, err
	}
	return out, out.complete(program, t, w.Record, w.Experiment())
}

// complete adds the document, the command and the origin of the results.
func (r *Result) complete(program string, t *report.Table, record *provenance.Record, e *experiment.Experiment) error {
	var document bytes.Buffer
	if err := t.Write(&document, report.JSONFormat); err != nil {
		return err
	}
	r.Document = document.Bytes()
	line, err := experiment.Line(record, e)
	if err != nil {
		return err
	}
	r.Commands = append(r.Commands, page.Command{Line: program + " " + Quoted(line...), Help: "By its command:"})
	return describe(&r.Section, record)
}
