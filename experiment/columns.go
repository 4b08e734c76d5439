package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/report"
)

// Section is columns that several experiments have in common, for a help text.
type commonColumns struct {
	Experiments []string // by name
	Columns     []report.Column
}

// Sections sort columns of experiments by which of them have them with the same
// meaning. Which columns of an experiment, of tells.
func commonSections(list []*Experiment, of func(e *Experiment) []report.Column) []commonColumns {
	type known struct {
		column report.Column
		of     []string
	}
	var columns []*known
	for _, e := range list {
		for _, c := range of(e) {
			i := slices.IndexFunc(columns, func(k *known) bool { return sameColumn(k.column, c) })
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

// sameColumn reports whether two columns are called the same and mean the same.
func sameColumn(a, b report.Column) bool {
	return a.Key() == b.Key() && a.Kind == b.Kind && a.Help == b.Help
}

// Title names the experiments of the section, given how many there are in all.
func (s *commonColumns) Title(all int) string {
	if len(s.Experiments) == all && all > 1 {
		return "all experiments"
	}
	return strings.Join(s.Experiments, ", ")
}
