package experiment

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// problems returns what was expected of points and is not so, and what has ended
// points early. nil: nothing.
func problems(results []*Result) error {
	var all []error
	for _, r := range results {
		err := r.problem()
		if err != nil && len(results) > 1 {
			err = fmt.Errorf("%s: %w", r.Point, err)
		}
		if err != nil {
			all = append(all, err)
		}
	}
	if more := len(all) - mostErrors; more > 0 {
		all = append(all[:mostErrors], fmt.Errorf("and %d more have failed", more))
	}
	return errors.Join(all...)
}

// asExpected lists the points without a problem.
func asExpected(results []*Result) []*Result {
	return slices.DeleteFunc(slices.Clone(results), func(r *Result) bool { return r.problem() != nil })
}

// problem is the error of the point's Run; of a point that was kept, it is made
// of the rows of Experiment.Failures.
func (r *Result) problem() error {
	if r.err != nil {
		return r.err
	}
	rows, _ := r.Values[r.Point.experiment.Failures].(Rows)
	var all []error
	for _, row := range rows {
		all = append(all, fmt.Errorf("%v", row[0]))
	}
	return errors.Join(all...)
}

// warnings lists what happened at points without being an error: the rows of
// Experiment.Warnings. What happened at several points is listed once.
func warnings(results []*Result) (lines []string) {
	at := make(map[string][]*Point)
	for _, r := range results {
		rows, _ := r.Values[r.Point.experiment.Warnings].(Rows)
		for _, row := range rows {
			text := fmt.Sprint(row[0])
			if at[text] == nil {
				lines = append(lines, text)
			}
			at[text] = append(at[text], r.Point)
		}
	}
	more := len(lines) - mostErrors
	lines = lines[:min(len(lines), mostErrors)]
	for i, text := range lines {
		switch n := len(at[text]); {
		case n >= len(results): // everywhere
		case n > 1:
			lines[i] = fmt.Sprintf("%s, and %d more: %s", at[text][0], n-1, text)
		default:
			lines[i] = fmt.Sprintf("%s: %s", at[text][0], text)
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("And %d more warnings.", more))
	}
	return lines
}

// cut is what has ended the point early; "": nothing.
func (r *Result) cut() string {
	text, _ := r.Values[r.Point.experiment.Cut].(string)
	return text
}

// limited reports whether a limit has ended the point.
func (r *Result) limited() bool { return errors.As(r.err, new(*sim.LimitError)) }

// cutOf is what has ended the first of the points that were cut; "": none was.
func cutOf(results []*Result) string {
	for _, r := range results {
		switch cut := r.cut(); {
		case cut != "" && len(results) > 1:
			return r.Point.String() + ": " + cut
		case cut != "":
			return cut
		}
	}
	return ""
}
