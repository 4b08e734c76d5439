package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/report"
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

// sameColumn reports whether two columns have the same name and meaning.
func sameColumn(a, b report.Column) bool {
	return a.Key() == b.Key() && a.Kind == b.Kind && a.Help == b.Help
}

// Title names the experiments of the section. all is how many experiments there
// are.
func (s *commonColumns) Title(all int) string {
	if len(s.Experiments) == all && all > 1 {
		return "all experiments"
	}
	return strings.Join(s.Experiments, ", ")
}
