package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// axis is a scale shared by all panels.
type axis struct {
	column  Column
	log     bool
	upright bool
	named   bool     // the values are names
	names   []string // placed at 0, 1, 2, ...
	low     float64
	high    float64
	any     bool
	binary  bool // values and ticks are powers of two
	unit    string
	divisor float64
	// on a logarithmic axis: the place of 0, left of or below all else; 0:
	// none
	zero   float64
	nought bool      // a value is 0
	length vg.Length // approximate length of the axis on paper
	values []float64 // the first different values, at most fewValues + 1
}

// fewValues is how many different values get ticks of their own instead of
// round numbers.
const fewValues = 3

// value returns v as a number on the axis.
func (a *axis) value(v any) (float64, error) {
	if v == nil {
		return 0, nil
	}
	if a.named {
		return a.place(alone(a.column, v)), nil
	}
	f, ok := float(a.column, v)
	if !ok {
		return 0, fmt.Errorf("column %s of kind %v has no numbers to draw", a.column.Key(), a.column.Kind)
	}
	if a.log && f < 0 {
		return 0, fmt.Errorf("%s is %g, which a logarithmic axis cannot show", a.column.Key(), f)
	}
	return f, nil
}

func (a *axis) include(f float64) {
	if len(a.values) <= fewValues && !slices.Contains(a.values, f) {
		a.values = append(a.values, f)
	}
	if a.log && f == 0 {
		a.nought = true
		return
	}
	mantissa, _ := math.Frexp(f)
	power := f >= 1 && mantissa == 0.5
	if !a.any {
		a.low, a.high, a.any, a.binary = f, f, true, power
		return
	}
	a.low, a.high, a.binary = min(a.low, f), max(a.high, f), a.binary && power
}

// breakRatio is the distance from 0 to the smallest number of a logarithmic
// axis, as a ratio.
const breakRatio = 4

// at returns the place of a value, in the units of the column.
func (a *axis) at(f float64) float64 {
	if a.log && f == 0 {
		return a.zero
	}
	return f
}

// fit chooses the unit and the visible range.
func (a *axis) fit() {
	if a.named {
		a.log, a.divisor, a.low, a.high = false, 1, -0.5, float64(len(a.names))-0.5
		return
	}
	if !a.any { // only zeros
		a.log, a.any = false, true
	}
	a.unit, a.divisor = a.column.Unit, 1
	a.binary = a.log && a.low < a.high && (a.column.Kind == Size || a.column.Kind == Count && a.binary)
	if a.column.Kind == Duration {
		picoseconds := float64(durationUnits[a.column.Unit])
		for i, u := range readable {
			if i == 0 || a.high*picoseconds >= 10*u.length {
				a.unit, a.divisor = u.name, u.length/picoseconds
			}
		}
	}
	if a.low == a.high {
		a.low, a.high = a.low/2, a.high*2
		if a.low == 0 {
			a.high = 1
		}
	}
	margin := 0.02
	if a.upright {
		margin = 0.06
	}
	if a.log && a.nought {
		a.zero = a.low / breakRatio
		a.low = a.zero
	}
	if a.log {
		widen := math.Pow(a.high/a.low, margin)
		a.low, a.high = a.low/widen, a.high*widen
		return
	}
	margin *= a.high - a.low
	a.high += margin
	switch {
	case a.low >= 0 && (a.upright || a.low < a.high/4):
		a.low = 0 // lengths on a linear axis must be in proportion
	default:
		a.low -= margin
	}
}

// label returns the text along the axis.
func (a *axis) label() string {
	if a.unit == "" {
		return a.column.title()
	}
	return a.column.title() + " (" + a.unit + ")"
}
