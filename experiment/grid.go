package experiment

import (
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// grid is an experiment with the values of its axes. Their combinations are the
// points of a sweep.
type grid struct {
	experiment *Experiment
	values     [][]any // of the axes
	chosen     []bool  // whether the user has asked for the values of an axis
	varied     int     // how many axes Sweep.Set has added, at the end
}

// own lists the axes that Set has added.
func (g *grid) own() []int {
	list := make([]int, g.varied)
	for i := range list {
		list[i] = len(g.experiment.Axes) - g.varied + i
	}
	return list
}

// ofAxis returns the axis of the definition that sets a field. nil: there is
// none.
func (g *grid) ofAxis(path string) *Axis {
	own := g.experiment.Axes[:len(g.experiment.Axes)-g.varied]
	if i := slices.IndexFunc(own, func(a Axis) bool { return a.Field == path }); i >= 0 {
		return &own[i]
	}
	return nil
}

// newColumn makes a column name for a field that no other column has.
func (g *grid) newColumn(path string) string {
	name := columnName(path)
	for slices.ContainsFunc(g.experiment.TableColumns(), func(c report.Column) bool { return c.Name == name }) {
		name = "set_" + name
	}
	return name
}

// unchanged returns the values of the axes that Set has added at which the
// profile is as it was. There, published numbers hold. false: there are none.
func (g *grid) unchanged(base *provenance.Profile) (at []report.Is, ok bool) {
	for _, axis := range g.own() {
		a := &g.experiment.Axes[axis]
		i := slices.IndexFunc(g.values[axis], func(v any) bool {
			p := &Point{experiment: g.experiment, values: make([]any, len(g.values))}
			p.values[axis] = v
			changed, err := base.Load(p.field(axis))
			if err != nil {
				return false
			}
			is, err := provenance.NewProfile(changed)
			return err == nil && is.SHA256 == base.SHA256
		})
		if i < 0 {
			return nil, false
		}
		at = append(at, report.Is{Column: a.column().Name, Value: g.values[axis][i]})
	}
	return at, true
}

// parts divides the results by the values of the axes that Set has added, and
// calls each for every combination. where begins a sentence about it. If there
// are more than four combinations, only the first and the last count.
func (g *grid) parts(results []*Result, each func(of *grid, where string, results []*Result)) {
	if g.varied == 0 {
		each(g, "", results)
		return
	}
	own := g.own()
	var combined [][]any
	var values [][]any
	for _, i := range own {
		values = append(values, g.values[i])
	}
	_ = combinations(values, func(one []any) error { // the function never fails
		combined = append(combined, slices.Clone(one))
		return nil
	})
	if len(combined) > 4 {
		combined = [][]any{combined[0], combined[len(combined)-1]}
	}
	for _, one := range combined {
		of := *g
		of.values = slices.Clone(g.values)
		var where []string
		for i, axis := range own {
			of.values[axis] = one[i : i+1]
			where = append(where, g.experiment.Axes[axis].Name+" "+g.experiment.Axes[axis].Plain(one[i]))
		}
		these := slices.DeleteFunc(slices.Clone(results), func(r *Result) bool {
			return !slices.Equal(r.Point.values[len(r.Point.values)-g.varied:], one)
		})
		each(&of, strings.Join(where, ", ")+": ", these)
	}
}

// several lists the flags of axes with several values.
func (g *grid) several() (names []string) {
	for i := range g.experiment.Axes {
		name := g.experiment.Axes[i].flag()
		if i >= len(g.experiment.Axes)-g.varied {
			name = "--set " + g.experiment.Axes[i].Name
		}
		if len(g.values[i]) > 1 {
			names = append(names, name)
		}
	}
	return names
}

// text writes the values of all axes.
func (g *grid) text() string {
	var parts []string
	for i := range g.experiment.Axes {
		a := &g.experiment.Axes[i]
		parts = append(parts, a.title()+" "+strings.Join(a.texts(g.values[i]), ","))
	}
	return strings.Join(parts, "; ")
}

// quiet reports whether an axis of View.Quiet has one value and so needs no
// column.
func (g *grid) quiet(axis int) bool {
	return len(g.values[axis]) == 1 && slices.Contains(g.experiment.View.Quiet, g.experiment.Axes[axis].Name) && !g.stepping(axis)
}

// everywhere writes the values of the axes that no row shows. "": there are
// none.
func (g *grid) everywhere() string {
	var parts []string
	for i := range g.experiment.Axes {
		if a := &g.experiment.Axes[i]; g.quiet(i) && !a.Fixed() {
			parts = append(parts, a.Name+" "+a.Plain(g.values[i][0]))
		}
	}
	if parts == nil {
		return ""
	}
	return "Everywhere: " + strings.Join(parts, ", ") + "."
}

// named lists the columns of View.Summary without quiet axes. It adds all axes
// that vary, because rows could not be told apart without them.
func (g *grid) named() []string {
	e := g.experiment
	names := slices.Clone(e.View.Summary)
	at := slices.Index(names, ProfileColumn) + 1
	for i := range e.Axes {
		name := e.Axes[i].column().Name
		switch known := slices.Index(names, name); {
		case known >= 0 && g.quiet(i):
			names = slices.Delete(names, known, known+1)
		case known < 0 && (len(g.values[i]) > 1 || g.stepping(i)):
			names = slices.Insert(names, at, name)
			at++
		}
	}
	return names
}

// fewer returns the grid with as many points as a table of steps can hold.
func (g *grid) fewer() grid {
	few := *g
	few.values = slices.Clone(g.values)
	rows := g.experiment.rows()
	for i, axis := range rows {
		if !g.chosen[axis] && i < len(rows)-1 {
			few.values[axis] = []any{g.values[axis][largest(g.values[axis])]}
		}
	}
	return few
}

// along is the axis of x in a plot: View.X, or the axis of numbers with the
// most values. -1: there is none.
func (g *grid) along() int {
	e := g.experiment
	best := -1
	for i := range e.Axes {
		a := &e.Axes[i]
		if e.View.X == a.column().Name && e.View.X != "" {
			return i
		}
		_, isNumber := number(a.zero())
		if !isNumber || a.Fixed() || e.View.X != "" || slices.Contains(e.View.Series, a.Name) {
			continue
		}
		if best < 0 || len(g.values[i]) > len(g.values[best]) {
			best = i
		}
	}
	return best
}

// byName is an axis of texts whose values are places on x, for a plot whose
// axis of numbers has one value. It prefers an axis that Set has added, then
// other axes, then a series. -1: there is none.
func (g *grid) byName(numbers int) int {
	e := g.experiment
	if e.View.Course || e.View.X != "" && numbers < 0 || len(e.View.Parts) > 0 || numbers >= 0 && len(g.values[numbers]) > 1 {
		return -1
	}
	best := -1
	for i := range e.Axes {
		a := &e.Axes[i]
		if _, isNumber := number(a.zero()); isNumber || len(g.values[i]) < 2 {
			continue
		}
		if series := slices.Contains(e.View.Series, a.Name); best < 0 || !series {
			best = i
		}
	}
	return best
}
