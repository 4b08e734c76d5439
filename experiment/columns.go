package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// commonColumns are columns that several experiments share, for a help text.
type commonColumns struct {
	Experiments []string // by name
	Columns     []report.Column
}

// commonSections sorts the columns of experiments into sections. A section has
// the columns that the same experiments share, with the same meaning. of
// returns the columns of an experiment.
func commonSections(list []*Experiment, of func(e *Experiment) []report.Column) []commonColumns {
	type known struct {
		column report.Column
		of     []string
	}
	var columns []*known
	for _, e := range list {
		for _, c := range of(e) {
			i := slices.IndexFunc(columns, func(k *known) bool {
				return k.column.Key() == c.Key() && k.column.Kind == c.Kind && k.column.Help == c.Help
			})
			if i < 0 {
				i = len(columns)
				columns = append(columns, &known{column: c})
			}
			columns[i].of = append(columns[i].of, e.Name)
		}
	}
	var sections []commonColumns
	for _, k := range columns {
		i := slices.IndexFunc(sections, func(s commonColumns) bool { return fmt.Sprint(s.Experiments) == fmt.Sprint(k.of) })
		if i < 0 {
			i = len(sections)
			sections = append(sections, commonColumns{Experiments: k.of})
		}
		sections[i].Columns = append(sections[i].Columns, k.column)
	}
	return sections
}

// Title names the experiments of the section. all is how many experiments there
// are.
func (s *commonColumns) Title(all int) string {
	if len(s.Experiments) == all && all > 1 {
		return "all experiments"
	}
	return strings.Join(s.Experiments, ", ")
}

// Columns at the beginning of every table.
const (
	nameColumn    = "benchmark"
	ProfileColumn = "profile"
)

// TableColumns are the columns of a table of the experiment, without published
// numbers and provenance.
func (e *Experiment) TableColumns() []report.Column {
	columns := append(e.pointColumns(), e.Columns...)
	for _, r := range e.Relative {
		columns = append(columns, r.Column)
	}
	return columns
}

// pointColumns are the columns that tell points apart.
func (e *Experiment) pointColumns() []report.Column {
	columns := []report.Column{{Name: nameColumn, Help: "the experiment: what was measured; its manual says how"}}
	if !e.Deviceless {
		columns = append(columns, report.Column{Name: ProfileColumn, Help: "the device and network simulated"})
	}
	for i := range e.Axes {
		columns = append(columns, e.Axes[i].column())
	}
	return columns
}

// identityOf are the values of pointColumns.
func identityOf(p *Point) []any {
	row := []any{p.experiment.Name}
	if !p.experiment.Deviceless {
		row = append(row, p.Profile.Name)
	}
	return append(row, p.values...)
}

// detailColumns are the columns of a further table: those that tell points
// apart, then its own.
func detailColumns(e *Experiment, d *Detail) []report.Column {
	return append(e.pointColumns(), d.Columns...)
}

// ShortTime writes a time with about three digits, for a sentence.
func ShortTime(t sim.Time) string {
	switch {
	case t < sim.Microsecond:
		return fmt.Sprintf("%.0f ns", t.Nanoseconds())
	case t < 10*sim.Millisecond:
		return fmt.Sprintf("%.2f µs", t.Microseconds())
	case t < 10*sim.Second:
		return fmt.Sprintf("%.2f ms", 1e3*t.Seconds())
	}
	return fmt.Sprintf("%.2f s", t.Seconds())
}
