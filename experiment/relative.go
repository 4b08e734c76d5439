package experiment

import "github.com/spinsim/spinsim/report"

// relative computes a relative column of a result. nil: it has no value. at has
// the results by the keys of their points.
func (e *Experiment) relative(c *Relative, r *Result, at map[string]*Result) any {
	axis := e.axis(c.Axis)
	base, err := e.Axes[axis].parse(c.Base)
	if err != nil {
		return nil // not reached: Check parses it, too
	}
	there := at[r.Point.key(axis, base)]
	if there == nil || there == r && c.Column.Kind != report.Ratio {
		return nil
	}
	own, ok := Magnitude(r.Values[c.Of])
	other, known := Magnitude(there.Values[c.Of])
	switch {
	case !ok || !known:
		return nil
	case c.Column.Kind == report.Ratio && c.Rate:
		return divided(own, other, func(q float64) float64 { return q })
	case c.Column.Kind == report.Ratio:
		return divided(other, own, func(q float64) float64 { return q })
	case c.Column.Kind == report.Share:
		return divided(own, other, func(q float64) float64 { return 1 - q })
	}
	return divided(own, other, func(q float64) float64 { return q - 1 })
}

// divided returns f of a / b, or nil if b is 0.
func divided(a, b float64, f func(float64) float64) any {
	if b == 0 {
		return nil
	}
	return f(a / b)
}

// Magnitude converts a value of a column to a number. It returns false for
// text, flags and nil.
func Magnitude(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return number(v)
}

// relativeColumn returns a relative column. nil: it is none.
func (e *Experiment) relativeColumn(name string) *Relative {
	for i := range e.Relative {
		if e.Relative[i].Column.Name == name {
			return &e.Relative[i]
		}
	}
	return nil
}
