package ledger

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Precision is how exactly a publication gives a number.
type Precision string

// The precisions.
const (
	Exact   Precision = "exact"   // as written: each digit counts
	About   Precision = "about"   // in words: zeros at the end do not count
	Read    Precision = "read"    // off a figure: zeros at the end do not count
	Derived Precision = "derived" // computed from other numbers of the text
)

// Value is what a publication gives: numbers, or the words of a claim.
type Value struct {
	Text    string   // as in the file
	Numbers []Number // none: Text is a claim; several: one for each condition
}

// Number is a published number, a bound, or a range.
type Number struct {
	Best      float64 // the number; NaN for bounds and ranges
	Low, High float64 // what agrees with it, for example 37.5 and 38.5 for 38
}

// ParseValue reads a value:
//
//	38          a number
//	<=1.9  >5   a bound
//	~60         a number that is meant to be approximate
//	4..20       a range
//	0.65; 0.23  several numbers
//
// Whatever has none of these forms is a claim. Only an empty value is an error.
func ParseValue(text string, p Precision) (Value, error) {
	v := Value{Text: text}
	if strings.TrimSpace(text) == "" {
		return v, fmt.Errorf("value: empty, expected numbers or a claim")
	}
	for item := range strings.SplitSeq(text, ";") {
		n, ok := parseNumber(strings.TrimSpace(item), p)
		if !ok {
			v.Numbers = nil
			break
		}
		v.Numbers = append(v.Numbers, n)
	}
	return v, nil
}

func parseNumber(text string, p Precision) (n Number, ok bool) {
	for _, bound := range []struct {
		prefix string
		upper  bool
	}{{"<=", true}, {">=", false}, {"<", true}, {">", false}} {
		if rest, found := strings.CutPrefix(text, bound.prefix); found {
			x, _, ok := digits(rest, p)
			if bound.upper {
				return Number{math.NaN(), math.Inf(-1), x}, ok
			}
			return Number{math.NaN(), x, math.Inf(1)}, ok
		}
	}
	if low, high, found := strings.Cut(text, ".."); found {
		a, _, okLow := digits(low, p)
		b, _, okHigh := digits(high, p)
		return Number{math.NaN(), a, b}, okLow && okHigh && a <= b
	}
	if rest, found := strings.CutPrefix(text, "~"); found {
		text, p = rest, About
	}
	x, half, ok := digits(text, p)
	return Number{x, x - half, x + half}, ok
}

// digits returns a number, and half a unit of its last digit that counts.
func digits(text string, p Precision) (x, half float64, ok bool) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, 0, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	power, _ := strconv.Atoi(exponent) // "" is 0
	whole, fraction, pointed := strings.Cut(mantissa, ".")
	power -= len(fraction)
	if (p == About || p == Read) && !pointed {
		all := strings.TrimRight(whole, "0")
		if strings.Trim(all, "+-") != "" {
			power += len(whole) - len(all)
		}
	}
	return x, 0.5 * math.Pow10(power), true
}

// Claim reports whether a row can only hold or not: it has no numbers, or its
// number is 0, from which there is no relative distance.
func (v Value) Claim() bool {
	for _, n := range v.Numbers {
		if n.Best != 0 {
			return false
		}
	}
	return true
}

// Distance is how far ours is from the number: 0 within what the publication
// gives, else exp|ln(ours/published)| - 1, so that half as much is as far as
// twice as much. It is infinite if only one of the two is positive. From a
// bound or a range it is the distance to the nearest end.
func (n Number) Distance(ours float64) float64 {
	if n.Low <= ours && ours <= n.High {
		return 0
	}
	published := n.Best
	if math.IsNaN(published) {
		published = n.Low
		if ours > n.High {
			published = n.High
		}
	}
	ratio := ours / published
	if !(ratio > 0) {
		return math.Inf(1)
	}
	return max(ratio, 1/ratio) - 1
}
