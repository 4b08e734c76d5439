package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/identify"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
)

// identification reads what is to be identified.
func (f *identifyFlags) identification(c *cobra.Command, args []string) (*identification, error) {
	switch {
	case f.measured == "" && f.device != "":
		return nil, badInput(errors.New("--profile: expected --measured with it; a publication has its own profiles"))
	case f.measured == "":
		return f.ofPublication(c, args)
	case len(args) > 0 || f.device == "":
		return nil, badInput(errors.New("--measured: expected --profile with it, and no PUBLICATION"))
	}
	text, err := file.Read(f.measured, file.MaxText)
	if err != nil {
		return nil, badInput(fmt.Errorf("--measured: %w", err))
	}
	if _, err := cli.LoadProfile(f.device); err != nil {
		return nil, badInput(err)
	}
	id := &identification{name: f.measured, title: f.measured}
	id.record.Inputs = append(id.record.Inputs, provenance.NewInput(f.measured, text))
	if id.experiments, err = ownRows(f.measured, f.device, strings.ReplaceAll(string(text), "\r\n", "\n")); err != nil {
		return nil, badInput(err)
	}
	for _, e := range id.experiments {
		for _, r := range e.Ledger {
			id.study.Rows = append(id.study.Rows, identify.Row{Row: r.Row, Experiment: e.Name})
		}
	}
	questions, err := id.openQuestions()
	if err != nil {
		return nil, err
	}
	return id, f.ask(id, questions)
}

// openQuestions lists what publications leave open about the experiments of rows.
// What none of the rows can be asked is left out.
func (id *identification) openQuestions() (list []ledger.Question, err error) {
	var of []*experiment.Publication
	for _, p := range experiment.Publications() {
		if slices.ContainsFunc(p.Experiments, func(e *experiment.Experiment) bool {
			return slices.ContainsFunc(id.experiments, func(own *experiment.Experiment) bool { return own.Name == e.Name })
		}) {
			of = append(of, p)
		}
	}
	for _, p := range of {
		questions, err := ledger.Questions(p.Name)
		if err != nil {
			return nil, err
		}
		for _, q := range questions {
			q.Alternatives = slices.DeleteFunc(slices.Clone(q.Alternatives), func(a ledger.Alternative) bool { return len(a.Set) > 0 && !id.takes(&a) })
			if len(of) > 1 {
				q.ID = p.Name + ":" + q.ID
			}
			if len(q.Alternatives) > 1 {
				list = append(list, q)
			}
		}
	}
	return list, nil
}

// takes reports whether a row can have an alternative.
func (id *identification) takes(alternative *ledger.Alternative) bool {
	r, err := alternative.Range()
	if err != nil {
		return false
	}
	a := experiment.Assignments{Set: alternative.Set}
	if r != nil {
		a.Set = []string{r.At(r.Low)}
	}
	for _, e := range id.experiments {
		for _, row := range e.Ledger {
			if s, err := row.Sweep(e); err != nil || a.Apply(s) != nil {
				return false
			}
		}
	}
	return a.Err() == nil
}

// ofPublication takes rows and questions of a publication.
func (f *identifyFlags) ofPublication(c *cobra.Command, args []string) (*identification, error) {
	if err := exactArguments("PUBLICATION")(c, args); err != nil {
		return nil, err
	}
	p, err := experiment.FindPublication(args[0])
	if err != nil {
		return nil, badInput(err)
	}
	questions, err := ledger.Questions(p.Name)
	if err != nil {
		return nil, err
	}
	id := evidence(p, f.longest)
	return id, f.ask(id, questions)
}

// evidence has the rows of a publication that are evidence and that are
// measured in a time.
func evidence(p *experiment.Publication, longest time.Duration) *identification {
	id := &identification{name: p.Name, title: p.Title, experiments: p.Experiments}
	measured := ledger.AllMeasured()
	for _, e := range p.Experiments {
		for _, r := range e.Ledger {
			row, ok := ledger.Find(r.ID)
			if !ok || row.Same != "" || row.Class != ledger.Predicted && row.Class != ledger.Checked {
				continue
			}
			if m := measured[r.ID]; m == nil || m.Seconds > longest.Seconds() {
				id.left++
				continue
			}
			id.study.Rows = append(id.study.Rows, identify.Row{Row: row, Experiment: e.Name})
		}
	}
	return id
}

// ask chooses the questions: those of a file, if there is one.
func (f *identifyFlags) ask(id *identification, questions []ledger.Question) error {
	if f.asked != "" {
		text, err := file.Read(f.asked, file.MaxText)
		if err != nil {
			return badInput(fmt.Errorf("--questions: %w", err))
		}
		id.record.Inputs = append(id.record.Inputs, provenance.NewInput(f.asked, text))
		if questions, err = ledger.ParseQuestions(strings.ReplaceAll(string(text), "\r\n", "\n")); err != nil {
			return badInput(fmt.Errorf("%s: %w", f.asked, err))
		}
		if err := id.checkAsked(questions); err != nil {
			return badInput(fmt.Errorf("%s: %w", f.asked, err))
		}
	}
	id.some = len(f.only) > 0
	var names []string
	for _, q := range questions {
		names = append(names, q.ID)
		if !id.some || slices.Contains(f.only, q.ID) {
			id.study.Questions = append(id.study.Questions, q)
		}
	}
	for _, name := range f.only {
		if !slices.Contains(names, name) {
			return badInput(fmt.Errorf("--only: no question %q, expected some of %s", name, strings.Join(names, ", ")))
		}
	}
	if len(id.study.Questions) == 0 {
		return badInput(fmt.Errorf("%s: no open questions are known", id.name))
	}
	id.study.Whole = id.whole()
	return nil
}

// whole lists the paths of ranges that take whole numbers only.
func (id *identification) whole() map[string]bool {
	list := make(map[string]bool)
	for _, q := range id.study.Questions {
		for i := range q.Alternatives {
			r, err := q.Alternatives[i].Range()
			if err != nil || r == nil || r.Unit != "" || r.Low != math.Trunc(r.Low) || r.High != math.Trunc(r.High) {
				continue
			}
			takes := func(x float64) bool { return id.takes(&ledger.Alternative{Set: []string{r.At(x)}}) }
			list[r.Path] = takes(r.Low) && !takes(r.Low+0.5)
		}
	}
	return list
}

// checkAsked returns an error for the user's questions if no measured row can
// have a value of an answer: it would count as an answer without effect.
func (id *identification) checkAsked(questions []ledger.Question) error {
	var errs []error
	for i := range questions {
		q := &questions[i]
		for k := range q.Alternatives {
			if err := id.checkAnswer(&q.Alternatives[k], k == 0); err != nil {
				errs = append(errs, fmt.Errorf("question %s, alternative %s: %w", q.ID, q.Alternatives[k].Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkAnswer checks an alternative of a question. today: it is the first.
func (id *identification) checkAnswer(alternative *ledger.Alternative, today bool) error {
	if today && len(alternative.Set) > 0 {
		return fmt.Errorf("%s: the first is today's answer, expected no set", strings.Join(alternative.Set, " "))
	}
	r, err := alternative.Range()
	if err != nil {
		return err
	}
	sets := [][]string{alternative.Set}
	if r != nil {
		sets = [][]string{{r.At(r.Low)}, {r.At(r.High)}}
	}
	for _, set := range sets {
		a := experiment.Assignments{Set: set}
		for _, e := range id.experiments {
			for _, row := range e.Ledger {
				s, err := row.Sweep(e)
				if err == nil {
					err = a.Apply(s)
				}
				if err != nil {
					return err
				}
			}
		}
		if err := a.Left(); err != nil {
			return err
		}
	}
	return nil
}

// ownColumns are the columns of a table of measurements.
const ownColumns = "experiment\tof\tcolumn\tvalue\tunit\tprecision\n"

// ownRows reads a table of measurements of a device: experiments whose rows they
// are.
func ownRows(name, device, text string) (list []*experiment.Experiment, err error) {
	rest, ok := strings.CutPrefix(text, ownColumns)
	if !ok {
		return nil, fmt.Errorf("%s:1: expected %q", name, ownColumns)
	}
	line := 1
	for text := range strings.Lines(rest) {
		line++
		at := fmt.Sprintf("%s:%d", name, line)
		cells := strings.Split(strings.TrimSuffix(text, "\n"), "\t")
		if len(cells) != 6 {
			return nil, fmt.Errorf("%s: %d columns, expected 6, separated by tabulators", at, len(cells))
		}
		v, err := ledger.ParseValue(cells[3], ledger.Precision(cells[5]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if v.Claim() || slices.ContainsFunc(v.Numbers, func(n ledger.Number) bool { return !(n.High > 0) }) {
			return nil, fmt.Errorf("%s: value %q, expected a number above 0", at, cells[3])
		}
		if !slices.Contains([]ledger.Precision{ledger.Exact, ledger.About, ledger.Read}, ledger.Precision(cells[5])) {
			return nil, fmt.Errorf("%s: precision %q, expected exact, about or read", at, cells[5])
		}
		if strings.Contains(" "+cells[1], " "+experiment.ProfileColumn+"=") {
			return nil, fmt.Errorf("%s: %q: expected no profile, --profile names it", at, cells[1])
		}
		given := make(map[string]bool)
		for item := range strings.FieldsSeq(cells[1]) {
			name, _, _ := strings.Cut(item, "=")
			if given[name] {
				return nil, fmt.Errorf("%s: %s is given twice", at, name)
			}
			given[name] = true
		}
		row := experiment.LedgerRow{ID: at, Profile: device, Of: cells[1], Column: cells[2], Row: &ledger.Row{ID: at, Published: v, Unit: cells[4]}}
		i := slices.IndexFunc(list, func(e *experiment.Experiment) bool { return e.Name == cells[0] })
		if i < 0 {
			e, err := experiment.Find(cells[0])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
			own := *e
			own.Ledger = nil
			i, list = len(list), append(list, &own)
		}
		list[i].Ledger = append(list[i].Ledger, row)
		if err := list[i].Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if _, err := row.Sweep(list[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("%s: no measurement", name)
	}
	return list, nil
}

// todays are the numbers of ranges in the profiles of rows, as far as they have
// the unit of the range. It notes the profiles in the record.
func todays(id *identification) (map[string]float64, error) {
	all := map[string]float64{}
	seen := map[string]bool{}
	for _, e := range id.experiments {
		var profiles []string
		if len(e.Ledger) == 0 || e.Ledger[0].Profile == "" {
			profiles = e.DefaultProfiles()
		}
		for _, r := range e.Ledger {
			s, err := r.Sweep(e)
			if err != nil {
				return nil, err
			}
			profiles = append(profiles, s.Profiles...)
		}
		for _, name := range profiles {
			if seen[name] {
				continue
			}
			seen[name] = true
			d, err := profile.Load(name)
			if err != nil {
				return nil, err
			}
			one, err := provenance.NewProfile(d)
			if err != nil {
				return nil, err
			}
			id.record.Profiles = append(id.record.Profiles, one)
			values, err := profile.Values(one.Content, d.Origin)
			if err != nil {
				return nil, err
			}
			for _, q := range id.study.Questions {
				for i := range q.Alternatives {
					r, err := q.Alternatives[i].Range()
					if err != nil || r == nil {
						continue
					}
					at := slices.IndexFunc(values, func(v profile.Value) bool { return v.Path == r.Path })
					if _, known := all[r.Path]; known || at < 0 {
						continue
					}
					if x, ok := r.Number(values[at].Value); ok {
						all[r.Path] = x
					}
				}
			}
		}
	}
	return all, nil
}
