package ledger

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Question is a place where publications are silent or contradict themselves,
// with its admissible alternatives. The first is what spinsim does.
type Question struct {
	ID           string
	What         string
	Alternatives []Alternative
}

// Number reads a value of the range's unit.
func (r *Range) Number(value string) (x float64, ok bool) {
	x, unit, ok := number(value)
	return x, ok && unit == r.Unit
}

// Alternative is an answer to a question.
type Alternative struct {
	Name string
	// Set is what it changes: "path=value" of a profile, or "axis=value" of
	// experiments with such an axis. A range "path=low..high" admits any number
	// between.
	Set    []string
	Source string // of the text that admits it; "ours": none does
}

// Range is a value of a profile of which a question admits all numbers from Low
// to High, both in Unit.
type Range struct {
	Path      string
	Low, High float64
	Unit      string
}

// At writes the assignment of a number, with four digits: profiles keep times to
// the picosecond.
func (r *Range) At(x float64) string {
	return r.Path + "=" + strconv.FormatFloat(x, 'g', 4, 64) + r.Unit
}

// Range returns the range of an alternative that has one. nil: it sets values.
func (a *Alternative) Range() (*Range, error) {
	for _, set := range a.Set {
		name, value, _ := strings.Cut(set, "=")
		low, high, found := strings.Cut(value, "..")
		if !found {
			continue
		}
		if len(a.Set) > 1 {
			return nil, fmt.Errorf("%s: a range beside other values", set)
		}
		x, unit, ok := number(low)
		y, other, okToo := number(high)
		if !ok || !okToo || unit != other || x >= y {
			return nil, fmt.Errorf("%s: expected two numbers with the same unit, the smaller first", set)
		}
		return &Range{name, x, y, unit}, nil
	}
	return nil, nil //nolint:nilnil // there is none
}

// number divides "3.5us" into the number and its unit.
func number(text string) (x float64, unit string, ok bool) {
	end := strings.LastIndexFunc(text, func(r rune) bool { return r >= '0' && r <= '9' || r == '.' }) + 1
	x, err := strconv.ParseFloat(text[:end], 64)
	return x, text[end:], err == nil
}

//go:embed questions/*.tsv
var questions embed.FS

// Questions returns what the publications of an experiment's wing leave open, for
// example of "part". None: nothing is known to be open.
func Questions(name string) ([]Question, error) {
	text, err := questions.ReadFile(path.Join("questions", name+".tsv"))
	if err != nil {
		return nil, nil //nolint:nilerr // no file: no questions
	}
	list, err := ParseQuestions(string(text))
	if err != nil {
		return nil, fmt.Errorf("questions of %s: %w", name, err)
	}
	return list, nil
}

// Exclusion is an alternative that numbers of a publication exclude: with it a
// row stays far whatever the other answers are, and with another one it does not.
// spinsim identify finds them. None is listed where today's answer is excluded,
// too: then one is missing, or the rows contradict each other.
type Exclusion struct {
	Publication           string // as in Questions
	Question, Alternative string
	Row                   string // its ID
}

const exclusionColumns = "publication\tquestion\talternative\trow\n"

// Excluded returns the alternatives that are known to be excluded.
func Excluded() (list []Exclusion, err error) {
	text, err := questions.ReadFile("questions/excluded.tsv")
	if err != nil {
		return nil, err
	}
	err = eachLine(string(text), exclusionColumns, func(f []string) error {
		list = append(list, Exclusion{f[0], f[1], f[2], f[3]})
		return nil
	})
	return list, err
}

const questionColumns = "question\twhat\talternative\tset\tsource\n"

// ParseQuestions reads questions: a line for each alternative, today's first,
// with the columns question, what, alternative, set and source. Assignments in
// set are separated by blanks.
func ParseQuestions(text string) (list []Question, err error) {
	err = eachLine(text, questionColumns, func(f []string) error {
		if f[0] == "" || f[2] == "" {
			return errors.New("expected the names of a question and of an alternative")
		}
		i := slices.IndexFunc(list, func(q Question) bool { return q.ID == f[0] })
		if i < 0 {
			i = len(list)
			list = append(list, Question{ID: f[0], What: f[1]})
		}
		a := Alternative{Name: f[2], Set: strings.Fields(f[3]), Source: f[4]}
		if slices.ContainsFunc(list[i].Alternatives, func(o Alternative) bool { return o.Name == a.Name }) {
			return fmt.Errorf("question %s has two alternatives %s", f[0], f[2])
		}
		for _, set := range a.Set {
			if name, value, found := strings.Cut(set, "="); !found || name == "" || value == "" {
				return fmt.Errorf("%q, expected path=value", set)
			}
		}
		list[i].Alternatives = append(list[i].Alternatives, a)
		_, err := a.Range()
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, q := range list {
		if r, _ := q.Alternatives[0].Range(); len(q.Alternatives) < 2 || r != nil {
			return nil, fmt.Errorf("question %s: expected what is done today, and then alternatives", q.ID)
		}
	}
	return list, nil
}
