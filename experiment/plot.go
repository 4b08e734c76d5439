package experiment

import (
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/report"
)

// Plot describes the plot of a sweep: the value of View.Value along the axis
// with the most values. A published value relative to another point is drawn as
// the value that it makes with our value there.
func (s *Sweep) Plot() report.Plot {
	e := s.grid.experiment
	value := e.value()
	p := report.Plot{Title: s.title(), Caption: s.grid.everywhere(), Y: value.Key(), LogY: !e.View.Course && value.Kind != report.Share && value.Kind != report.Change}
	x, lines := s.grid.along(), -1
	if len(e.View.Series) > 0 && len(e.View.Parts) == 0 {
		lines = e.axis(e.View.Series[0])
	}
	by := s.grid.byName(x)
	if by >= 0 && by == lines {
		lines = -1 // each has its own place on x
	}
	p.Stack = e.View.Parts
	p.X = e.View.X
	if by >= 0 {
		x, p.X = by, ""
	}
	if p.X == "" && x >= 0 {
		p.X = e.Axes[x].column().Key()
	}
	c, _ := e.column(p.X)
	p.LogX = !e.View.Course && c.Kind != report.Share && c.Kind != report.Change && (x < 0 || !anyNegative(s.grid.values[x]))
	var panels []string
	if !e.Deviceless {
		panels = append(panels, ProfileColumn)
	}
	var besides []string // series that tell lines apart, after the first
	for i := range e.Axes {
		a := &e.Axes[i]
		switch {
		case x >= 0 && lines >= 0 && i != x && i != lines && len(s.grid.values[i]) > 1 && slices.Contains(e.View.Series, a.Name) && e.View.X != "" && len(e.View.Parts) == 0:
			besides = append(besides, a.column().Name)
		case a.Fixed() || i == x || i == lines || s.grid.quiet(i) || slices.Contains(e.View.Series, a.Name) && e.View.X != "" && len(e.View.Parts) == 0:
		case lines < 0 && len(s.grid.values[i]) > 1 && len(e.View.Parts) == 0:
			lines = i
		default:
			panels = append(panels, a.column().Name)
		}
	}
	if lines >= 0 {
		p.Series = strings.Join(append([]string{e.Axes[lines].column().Name}, besides...), ",")
	}
	p.Facet = strings.Join(panels, ",")
	p.Place = e.places(p.X)
	for column := range e.View.Place { //lint:maporder each by itself
		if by >= 0 { // Place is for an axis of numbers
			delete(p.Place, column)
		}
	}
	return p
}

// anyNegative reports whether one of the values is below 0.
func anyNegative(values []any) bool {
	return slices.ContainsFunc(values, func(v any) bool {
		x, _ := number(v)
		return x < 0
	})
}

// places returns the positions of published numbers in a plot along x.
func (e *Experiment) places(x string) map[string]func(value func(string) float64, published float64) (x, y float64) {
	all := make(map[string]func(value func(string) float64, published float64) (x, y float64))
	for i := range e.Relative {
		r := &e.Relative[i]
		if r.Of != e.value().Name {
			continue
		}
		own := e.value().Key()
		all[r.Column.Name] = func(value func(string) float64, published float64) (float64, float64) {
			ours := value(r.Column.Key())
			switch r.Column.Kind {
			case report.Ratio:
				return value(x), value(own) * ours / published
			case report.Share:
				return value(x), value(own) * (1 - published) / (1 - ours)
			}
			return value(x), value(own) * (1 + published) / (1 + ours)
		}
	}
	maps.Copy(all, e.View.Place)
	return all
}
