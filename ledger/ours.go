package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Ours is what spinsim has for a row: numbers in the row's unit, one for each
// published number, or whether the claim holds.
type Ours struct {
	Numbers []float64
	Holds   bool // of a row without numbers
}

// String writes numbers with six digits, separated by "; ", or true or false.
func (o Ours) String() string {
	if o.Numbers == nil {
		return strconv.FormatBool(o.Holds)
	}
	list := make([]string, len(o.Numbers))
	for i, n := range o.Numbers {
		list[i] = strconv.FormatFloat(n, 'g', 6, 64)
	}
	return strings.Join(list, "; ")
}

// ParseOurs reads what String writes.
func ParseOurs(text string) (o Ours, err error) {
	if text == "true" || text == "false" {
		return Ours{Holds: text == "true"}, nil
	}
	for item := range strings.SplitSeq(text, ";") {
		n, err := strconv.ParseFloat(strings.TrimSpace(item), 64)
		if err != nil || math.IsNaN(n) {
			return Ours{}, fmt.Errorf("%q, expected numbers separated by ;, or true or false", text)
		}
		o.Numbers = append(o.Numbers, n)
	}
	return o, nil
}

// Off is how far ours is from a row.
type Off struct {
	Claim    bool // the row can only hold or not
	Holds    bool // of a claim
	Distance float64
}

// Off compares ours with the row. A row of several numbers has the mean of
// their logarithms: one that agrees beside one that is off by a factor of two
// makes 41%. It is an error if there are not as many numbers as published.
func (r *Row) Off(ours Ours) (Off, error) {
	if len(ours.Numbers) != len(r.Published.Numbers) {
		return Off{}, fmt.Errorf("%s: ours is %v, published %s", r.ID, ours, r.Published.Text)
	}
	if len(ours.Numbers) == 0 {
		return Off{Claim: true, Holds: ours.Holds}, nil
	}
	sum := 0.0
	for i, n := range r.Published.Numbers {
		sum += math.Log1p(n.Distance(ours.Numbers[i]))
	}
	if r.Published.Claim() {
		return Off{Claim: true, Holds: sum == 0}, nil
	}
	return Off{Distance: math.Expm1(sum / float64(len(ours.Numbers)))}, nil
}

// Score says how near spinsim is to some rows.
type Score struct {
	Numbers     int // rows with numbers that were measured
	Median, P90 float64
	Beyond      int // of Numbers, how many are off by more than a quarter
	Claims      int // claims that were measured
	Hold        int // of Claims
	Open        int // rows that nothing measures
}

// Score scores the rows of a class with what was measured, by the ids of rows.
// Repeated rows do not count.
func (p *Publication) Score(class Class, measured map[string]*Measured) (s Score, err error) {
	var distances []float64
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Class != class || r.Same != "" {
			continue
		}
		m := measured[r.ID]
		if m == nil {
			s.Open++
			continue
		}
		off, err := r.Off(m.Ours)
		switch {
		case err != nil:
			return s, err
		case off.Claim:
			s.Claims++
			if off.Holds {
				s.Hold++
			}
		default:
			distances = append(distances, off.Distance)
			if off.Distance > 0.25 {
				s.Beyond++
			}
		}
	}
	slices.SortFunc(distances, cmp.Compare)
	s.Numbers = len(distances)
	s.Median, s.P90 = Quantile(distances, 0.5), Quantile(distances, 0.9)
	return s, nil
}

// Quantile interpolates between neighbours in sorted values. NaN: no values.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	low := int(at)
	if part := at - float64(low); part > 0 && sorted[low] < sorted[low+1] { // not of two infinities
		return sorted[low] + part*(sorted[low+1]-sorted[low])
	}
	return sorted[low]
}
