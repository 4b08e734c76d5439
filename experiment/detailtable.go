package experiment

import (
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// detailTable makes a further table: the rows of every point, each behind the values
// that tell the points apart. With origin, every row has its provenance, as in
// Table.
func detailTable(s *Sweep, results []*Result, d *Detail, origin bool) (*report.Table, error) {
	columns := detailColumns(s.grid.experiment, d)
	if origin {
		columns = append(columns, provenance.Columns()...)
	}
	t := report.New(columns...)
	t.Title = d.Title
	recorded := make(recordedProfiles)
	for _, r := range results {
		rows, _ := r.Values[d.Name].(Rows)
		var from []any
		if origin {
			one, err := recorded.of(r.Point.Profile)
			if err != nil {
				return nil, err
			}
			from = originOf(s, r.Point, one)
		}
		before := identityOf(r.Point)
		var values []any
		for _, row := range rows {
			values = append(append(append(values[:0], before...), row...), from...)
			t.Add(values...)
		}
	}
	return t, nil
}

// addFurther adds the further tables to the table of a sweep, with or without
// those that are quiet.
func addFurther(s *Sweep, t *report.Table, results []*Result, quiet bool) error {
	for i := range s.grid.experiment.Details {
		d := &s.grid.experiment.Details[i]
		if d.Quiet && !quiet {
			continue
		}
		one, err := detailTable(s, results, d, false)
		if err != nil {
			return err
		}
		t.Further = append(t.Further, report.Further{Name: d.Name, Table: one})
	}
	return nil
}

// seenBy makes a further table for people: only axes with several values have a
// column, and only what some row has.
func seenBy(s *Sweep, d *Detail, all *report.Table) (*report.Table, error) {
	var names []string
	if len(s.Profiles) > 1 {
		names = append(names, ProfileColumn)
	}
	for i := range s.grid.values {
		if len(s.grid.values[i]) > 1 {
			names = append(names, s.grid.experiment.Axes[i].column().Name)
		}
	}
	var zero, empty []string
	for i, c := range d.Columns {
		switch {
		case d.Zeros > 0 && i >= d.Zeros && inEvery(all, c, isZero):
			zero = append(zero, strings.ReplaceAll(c.Name, "_", " "))
		case inEvery(all, c, func(v any) bool { return v == nil || v == "" }):
			empty = append(empty, strings.ReplaceAll(c.Name, "_", " "))
		default:
			names = append(names, c.Name)
		}
	}
	seen, err := all.Select(names...)
	if err == nil && zero != nil {
		seen.Notes = append(seen.Notes, "Zero in every row: "+strings.Join(zero, ", ")+".")
	}
	if err == nil && empty != nil {
		seen.Notes = append(seen.Notes, "Empty in every row: "+strings.Join(empty, ", ")+".")
	}
	return seen, err
}

// isZero reports whether a value is the number 0.
func isZero(v any) bool {
	x, isNumber := Magnitude(v)
	return isNumber && x == 0
}

// inEvery reports whether a column has such a value in every row, and there is a
// row.
func inEvery(t *report.Table, c report.Column, such func(v any) bool) bool {
	i := slices.IndexFunc(t.Columns, func(o report.Column) bool { return o.Key() == c.Key() })
	return t.Len() > 0 && !slices.ContainsFunc(t.Rows(), func(row []any) bool { return !such(row[i]) })
}

// recordedProfiles are profiles as records have them.
type recordedProfiles map[*profile.Profile]*provenance.Profile

// of returns a profile as records have it; nil: there is no device.
func (known recordedProfiles) of(p *profile.Profile) (*provenance.Profile, error) {
	if p == nil || known[p] != nil {
		return known[p], nil
	}
	one, err := provenance.NewProfile(p)
	known[p] = &one
	return &one, err
}
