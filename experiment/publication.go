package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/profile"
)

// Publication is a publication with the experiments that reproduce its numbers.
type Publication struct {
	Name    string   // its name in commands
	Title   string   // for people
	Sources []string // the beginnings of the sources of its numbers
	// the time of all runs on one processor that other programs used as well;
	// most of it is simulation, which depends on no disk or network
	Minutes     int
	Experiments []*Experiment // in the order of the publication
	// Runs are what spinsim reproduce measures. Register adds the experiments of
	// these Sources that have no run here: they run with their defaults.
	Runs []PublicationRun

	month string // of its profiles; "": today's
}

// Dated returns the name of a profile for the publication: that of its month.
func (p *Publication) Dated(name string) (string, error) {
	if p.month == "" {
		return name, nil
	}
	return profile.AsOf(name, p.month)
}

// PublicationRun is an experiment of a publication.
type PublicationRun struct {
	Experiment string
	Preset     string // "": none
	Full       Choice // all that the publication has
	Quick      Choice // a part that takes seconds
	Without    string // what Quick leaves out, in words; "": only points between others
}

// Choice is what a run measures. The zero value measures the defaults.
type Choice struct {
	Skip      bool // nothing
	Profiles  string
	Values    string // "axis=list", separated by blanks
	Waterfall string // "FROM,TO": a waterfall between two profiles instead of a table
}

// FindPublication returns the publication with a name. A month behind the name,
// such as in spin17@2026-11, gives its runs the profiles of that month.
func FindPublication(name string) (*Publication, error) {
	var names []string
	name, month, dated := strings.Cut(name, "@")
	for _, p := range Publications() {
		if p.Name == name && dated {
			return p.asOf(month)
		}
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("no publication %q, expected one of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names))
}

// asOf returns the publication with the profiles of a month.
func (p *Publication) asOf(month string) (*Publication, error) {
	then := *p
	then.month = month
	then.Title += ", profiles of " + month
	then.Runs = slices.Clone(p.Runs)
	for i := range then.Runs {
		r := &then.Runs[i]
		for full, c := range map[bool]*Choice{true: &r.Full, false: &r.Quick} { //lint:maporder each by itself
			s, err := r.Sweep(full)
			if err != nil {
				return nil, err
			}
			profiles := slices.Clone(s.Profiles)
			if c.Waterfall != "" {
				profiles = strings.Split(c.Waterfall, ",")
			}
			for i := range profiles {
				if profiles[i], err = profile.AsOf(profiles[i], month); err != nil {
					return nil, err
				}
			}
			if c.Waterfall != "" {
				c.Waterfall = strings.Join(profiles, ",")
			} else {
				c.Profiles = strings.Join(profiles, ",")
			}
		}
	}
	return &then, nil
}

// Choice returns the full or the quick choice of a run.
func (r *PublicationRun) Choice(full bool) Choice {
	if full {
		return r.Full
	}
	return r.Quick
}

// Name names the run: the experiment, its preset, and the ends of a waterfall.
func (r *PublicationRun) Name(full bool) string {
	name := r.Experiment
	if r.Preset != "" {
		name += "-" + r.Preset
	}
	if w := r.Choice(full).Waterfall; w != "" {
		name += "-" + strings.ReplaceAll(w, ",", "-to-")
	}
	return name
}

// Sweep returns the sweep of a run.
func (r *PublicationRun) Sweep(full bool) (*Sweep, error) {
	e, err := Find(r.Experiment)
	if err == nil && r.Preset != "" {
		e, err = e.Preset(r.Preset)
	}
	if err != nil {
		return nil, err
	}
	s, err := New(e)
	if err != nil {
		return nil, err
	}
	c := r.Choice(full)
	if c.Profiles != "" {
		s.Profiles = strings.Split(c.Profiles, ",")
	}
	for value := range strings.FieldsSeq(c.Values) {
		axis, list, _ := strings.Cut(value, "=")
		if err := s.Choose(axis, list); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name(full), err)
		}
	}
	return s, nil
}
