package identify

import "slices"

// Contradiction is a question without an answer: each alternative that moves
// something is excluded by a row. An alternative is missing, or the rows
// contradict each other.
type Contradiction struct {
	Question string
	Sides    []Side
	// Number is one that nobody has published and that would tell best which side
	// is right. Its Factor is between the two sides that it tells apart. "": there
	// is none.
	Number Separation
}

// Side is a row that excludes alternatives.
type Side struct {
	Row      string
	Against  []string // the alternatives that it excludes
	Needs    string   // the alternative that comes nearest to it
	Distance float64  // and how far the row is then
}

// firstOf keeps one row for each alternative.
func firstOf(all []Exclusion) (list []Exclusion) {
	for _, x := range all {
		if !slices.ContainsFunc(list, func(o Exclusion) bool { return o.Question == x.Question && o.Alternative == x.Alternative }) {
			list = append(list, x)
		}
	}
	return list
}

// contradictions lists the questions without an alternative that is not
// excluded.
func (s *Study) contradictions(today *state, of *effects, all []Exclusion, picks []*pick, states []*state) (list []Contradiction) {
	for q := range s.Questions {
		rest, some := !s.has(all, q, s.nameOf(nil)), false
		for _, k := range of.of {
			if k.picks[0].question == q {
				some = true
				rest = rest || !s.has(all, q, s.nameOf(k))
			}
		}
		if some && !rest {
			c := Contradiction{Question: s.Questions[q].ID, Sides: sides(s.Questions[q].ID, all)}
			c.Number = between(s, &c, today, picks, states)
			list = append(list, c)
		}
	}
	return list
}

// sides are the fewest rows that exclude all alternatives of a question: of
// each step the row that excludes most of the rest.
func sides(question string, all []Exclusion) (list []Side) {
	var rows []Side
	for _, x := range all {
		if x.Question != question {
			continue
		}
		i := slices.IndexFunc(rows, func(r Side) bool { return r.Row == x.Row })
		if i < 0 {
			i, rows = len(rows), append(rows, Side{Row: x.Row, Needs: x.Instead, Distance: x.Then})
		}
		rows[i].Against = append(rows[i].Against, x.Alternative)
	}
	done := map[string]bool{}
	for {
		best, most := -1, 0
		for i, r := range rows {
			n := 0
			for _, a := range r.Against {
				if !done[a] {
					n++
				}
			}
			if n > most {
				best, most = i, n
			}
		}
		if best < 0 {
			return list
		}
		for _, a := range rows[best].Against {
			done[a] = true
		}
		list = append(list, rows[best])
	}
}

// between finds the number that differs most between alternatives that the
// sides need. Of a range the last number counts that was measured.
func between(s *Study, c *Contradiction, today *state, picks []*pick, states []*state) (found Separation) {
	found.Factor = 1
	var needed []*state
	var names []string
	for _, side := range c.Sides {
		at, name := today, "today's"
		for i, p := range picks {
			if q := &s.Questions[p.question]; q.ID == c.Question && q.Alternatives[p.alternative].Name == side.Needs && states[i].err == nil {
				at, name = states[i], p.name
			}
		}
		for k, other := range needed {
			if all := apart(at, other); len(all) > 0 && all[0].by() > found.by() {
				found = Separation{c.Question, name, names[k], all[0].Number, all[0].Factor, [2]int{}}
			}
		}
		needed, names = append(needed, at), append(names, name)
	}
	return found
}
