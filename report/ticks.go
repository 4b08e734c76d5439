package report

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// maxLabels is the maximum number of labels along an axis of a panel.
const maxLabels = 10

// fewest is the minimum number of labels of a readable axis.
const fewest = 3

// Ticks implements gonum's Ticker.
func (a *axis) Ticks(low, high float64) []plot.Tick {
	if a.named {
		return a.nameTicks()
	}
	least := low
	if a.zero > 0 {
		least = a.zero * breakRatio / 1.001 // no ticks between 0 and the smallest number
	}
	var ticks []plot.Tick
	if a.few() {
		if own := a.thin(a.valueTicks(low, high), low, high); labels(own) > 1 {
			return own
		}
	}
	switch {
	case a.binary:
		ticks = a.binaryTicks(least, high)
	case a.log && high/least >= 3:
		ticks = a.decadeTicks(least, high)
	}
	if labels(ticks) < fewest {
		if even := a.evenTicks(least, high); labels(even) > labels(ticks) {
			ticks = even
		}
	}
	if a.zero > 0 {
		ticks = append([]plot.Tick{{Value: a.zero, Label: "0"}}, ticks...)
	}
	return a.thin(ticks, low, high)
}

// few reports whether a horizontal axis has one value or a few close ones. Then
// there are no round numbers near them.
func (a *axis) few() bool {
	if a.upright || a.nought || len(a.values) == 0 || len(a.values) > fewValues {
		return false
	}
	least, most := slices.Min(a.values), slices.Max(a.values)
	return least > 0 && (len(a.values) == 1 || most < 3*least)
}

// valueTicks labels the values themselves, and for a single value also its half
// and its double.
func (a *axis) valueTicks(low, high float64) (ticks []plot.Tick) {
	values := slices.Clone(a.values)
	if v := values[0]; len(values) == 1 {
		values = append(values, v/2, 2*v)
	}
	values = slices.DeleteFunc(values, func(v float64) bool { return v < low || v > high || a.column.Kind == Count && v != math.Trunc(v) })
	for _, v := range slices.Sorted(slices.Values(values)) {
		label := shortNumber(v / a.divisor)
		switch {
		case a.column.Kind == Share:
			label = shortNumber(100*v) + "%"
		case a.column.Kind == Size && v >= 1 && v == math.Trunc(v):
			label = sizeLabel(int64(v))
		}
		ticks = append(ticks, plot.Tick{Value: a.at(v), Label: label})
	}
	return ticks
}

// sizeLabel writes bytes as 100, 4Ki, 96Ki, 1Mi: with the largest prefix that
// gives a whole number.
func sizeLabel(n int64) string {
	p := min(bits.TrailingZeros64(uint64(n))/10, len(prefixes)-1)
	return strconv.FormatInt(n>>(10*p), 10) + prefixes[p]
}

func labels(ticks []plot.Tick) (n int) {
	for _, t := range ticks {
		if t.Label != "" {
			n++
		}
	}
	return n
}

// thin removes the labels that would touch the previous one.
func (a *axis) thin(ticks []plot.Tick, low, high float64) []plot.Tick {
	position := func(v float64) vg.Length {
		if a.log {
			return a.length * vg.Length(math.Log(v/low)/math.Log(high/low))
		}
		return a.length * vg.Length((v-low)/(high-low))
	}
	free := vg.Length(math.Inf(-1))
	for i := range ticks {
		t := &ticks[i]
		if t.Label == "" {
			continue
		}
		half, gap := tickStyle.Width(t.Label)/2, tickStyle.Font.Size/2
		if a.upright {
			half, gap = tickStyle.Font.Size/2, tickStyle.Font.Size/6
		}
		at := position(t.Value)
		if at-half < free+gap {
			t.Label = ""
			continue
		}
		free = at + half
	}
	return ticks
}

// binaryTicks marks the powers of two and labels every nth of them.
func (a *axis) binaryTicks(low, high float64) []plot.Tick {
	first := int(math.Ceil(math.Log2(low) - 1e-9))
	last := int(math.Floor(math.Log2(high) + 1e-9))
	first = max(first, 0)
	step := (last-first)/maxLabels + 1
	var ticks []plot.Tick
	for e := first; e <= last; e++ {
		tick := plot.Tick{Value: math.Ldexp(1, e)}
		if (e-first)%step == 0 {
			tick.Label = shortNumber(tick.Value)
			if a.column.Kind == Size {
				tick.Label = sizeLabel(1 << e)
			}
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

var prefixes = []string{"", "Ki", "Mi", "Gi", "Ti"}

// decadeTicks marks 1 to 9 of every decade, in the axis' unit. It labels 1, or
// 1, 2 and 5 if there is room.
func (a *axis) decadeTicks(low, high float64) []plot.Tick {
	decades := math.Log10(high / low)
	step := int(decades)/maxLabels + 1
	var ticks []plot.Tick
	for e := int(math.Floor(math.Log10(low / a.divisor))); e <= int(math.Ceil(math.Log10(high/a.divisor))); e++ {
		for digit := 1; digit <= 9; digit++ {
			value := float64(digit) * math.Pow10(e)
			tick := plot.Tick{Value: value * a.divisor}
			if tick.Value < low*(1-1e-9) || tick.Value > high*(1+1e-9) {
				continue
			}
			between := (digit == 2 || digit == 5) && decades <= 3
			if digit == 1 && e%step == 0 || between {
				tick.Label = shortNumber(value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// evenTicks labels multiples of 1, 2 or 5 times a power of ten.
func (a *axis) evenTicks(low, high float64) []plot.Tick {
	divisor, prefix := a.divisor, ""
	if a.column.Kind == Size { // in the largest unit that occurs on the axis
		for p := len(prefixes) - 1; p > 0 && prefix == ""; p-- {
			if unit := math.Ldexp(1, 10*p); high >= unit {
				divisor, prefix = unit, prefixes[p]
			}
		}
	}
	low, high = low/divisor, high/divisor
	step := math.Pow10(int(math.Floor(math.Log10(high - low))))
	for _, f := range []float64{0.1, 0.2, 0.5, 1, 2} {
		if (high-low)/(step*f) <= maxLabels-3 {
			step *= f
			break
		}
	}
	var ticks []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9); i++ {
		label := shortNumber(i*step) + prefix
		if a.column.Kind == Share {
			label = shortNumber(100*i*step) + "%"
		}
		ticks = append(ticks, plot.Tick{Value: i * step * divisor, Label: label})
	}
	return ticks
}

// compact shortens the exponent of a number: 1e6, not 1e+06.
func compact(number string) string {
	digits, exponent, has := strings.Cut(number, "e")
	if !has {
		return number
	}
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	return digits + "e" + sign + strings.TrimLeft(exponent[1:], "0")
}

// shortNumber prints a tick's value without rounding noise.
func shortNumber(f float64) string {
	if f == 0 {
		return "0" // not -0
	}
	if math.Abs(f) >= 1e6 || math.Abs(f) < 1e-4 {
		return compact(strconv.FormatFloat(f, 'g', 4, 64))
	}
	s := strconv.FormatFloat(f, 'f', 6, 64)
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return group(s)
}
