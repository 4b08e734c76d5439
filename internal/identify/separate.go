package identify

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Separation is a number that nobody has published and that would tell two
// alternatives of a question apart.
type Separation struct {
	Question, Alternative string
	Against               string // the other alternative
	Number                string
	Factor                float64 // between the two

	place [2]int // of question and alternative
}

// Measurement is one new number, and the alternatives that it would tell from
// today's.
type Measurement struct {
	Number string // "": there is none
	Tells  []Separation
	Of     int // alternatives that remain and that any number tells from today's
}

// separate finds for each alternative that remains the numbers that differ by
// more than 10% from today's. Of a range the number in it counts that makes most
// of a difference. They are sorted by alternative, the largest difference first.
func (s *Study) separate(today *state, picks []*pick, states []*state, excluded []Exclusion) []Separation {
	type key struct {
		place  [2]int
		number string
	}
	all := map[key]Separation{}
	for i, p := range picks {
		q := &s.Questions[p.question]
		if states[i].err != nil || s.has(excluded, p.question, q.Alternatives[p.alternative].Name) {
			continue
		}
		for _, one := range apart(states[i], today) {
			one.Question, one.Alternative, one.Against, one.place = q.ID, p.name, "today's", [2]int{p.question, p.alternative}
			k := key{one.place, one.Number}
			if old, known := all[k]; !known || one.by() > old.by() {
				all[k] = one
			}
		}
	}
	return sorted(slices.Collect(maps.Values(all)))
}

// apart lists the numbers that differ by more than 10% between two states.
func apart(a, b *state) (list []Separation) {
	for name, x := range a.other { //lint:maporder the list is sorted
		if y, ok := b.other[name]; ok && x > 0 && y > 0 {
			if one := (Separation{Number: name, Factor: x / y}); one.by() > math.Log1p(near) {
				list = append(list, one)
			}
		}
	}
	return sorted(list)
}

// sorted sorts by alternative, the largest difference first.
func sorted(list []Separation) []Separation {
	slices.SortFunc(list, func(a, b Separation) int {
		return cmp.Or(slices.Compare(a.place[:], b.place[:]), cmp.Compare(b.by(), a.by()), cmp.Compare(a.Number, b.Number))
	})
	return list
}

// by is how much the two differ, as a logarithm.
func (s *Separation) by() float64 { return math.Abs(math.Log(s.Factor)) }

// farthestOf keeps for each alternative the number that differs most.
func farthestOf(sorted []Separation) []Separation {
	return slices.CompactFunc(slices.Clone(sorted), func(a, b Separation) bool { return a.place == b.place })
}

// first chooses the one number that tells most alternatives from today's. Of
// several it takes the one that differs more.
func first(sorted []Separation) Measurement {
	tells := map[string][]Separation{}
	sum := map[string]float64{}
	for _, one := range sorted {
		tells[one.Number] = append(tells[one.Number], one)
		sum[one.Number] += one.by()
	}
	m := Measurement{Of: len(farthestOf(sorted))}
	for _, name := range slices.Sorted(maps.Keys(tells)) {
		if c := cmp.Compare(len(tells[name]), len(m.Tells)); c > 0 || c == 0 && sum[name] > sum[m.Number] {
			m.Number, m.Tells = name, tells[name]
		}
	}
	return m
}
