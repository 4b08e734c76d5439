package serve

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/reports"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// selection is what a page asks for: an experiment, and what differs from its
// defaults.
type selection struct {
	Experiment string            `json:"experiment"`
	View       string            `json:"view"` // result, breakdown or timeline
	Preset     string            `json:"preset,omitempty"`
	Axes       map[string]string `json:"axes,omitempty"` // lists of values, as flags have them
	Profiles   []string          `json:"profiles,omitempty"`
	Set        []string          `json:"set,omitempty"`
	Seed       string            `json:"seed,omitempty"`
	Modules    map[string]sent   `json:"modules,omitempty"` // by slot
}

// sent is a module that was sent.
type sent struct {
	ID   string `json:"id"` // SHA-256 of its bytes
	Name string `json:"name"`
}

// The views of an experiment. Each is a command of its own.
const (
	viewResult    = "result"
	viewBreakdown = "breakdown"
	viewTimeline  = "timeline"
)

var views = []string{viewResult, viewBreakdown, viewTimeline}

// wrongError is the error of a selection, with the field of the page that it is
// about.
type wrongError struct {
	field string
	err   error
}

// Error names the flag, as the command does.
func (e *wrongError) Error() string { return "--" + e.field + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *wrongError) Unwrap() error { return e.err }

func wrong(field string, err error) error {
	if err == nil {
		return nil
	}
	return &wrongError{field, err}
}

// command is a checked selection.
type command struct {
	experiment *experiment.Experiment
	words      []string // flags and values behind the name, without the axes
	axes       []string // flags and values of the axes
	modules    []sent
}

// line is the command as people type it.
func (c *command) line() string {
	return "spinsim " + reports.Quoted(c.typed()...)
}

func (c *command) typed() []string {
	return slices.Concat([]string{"compare", c.experiment.Name}, c.words, c.axes)
}

// arguments are the same words for a program: a value stands behind its flag in
// one word, so that no value is taken for a flag.
func (c *command) arguments() []string {
	all := c.typed()[2:]
	list := []string{"compare", c.experiment.Name}
	for i := 0; i < len(all); i++ {
		if slices.Contains(switches, all[i]) {
			list = append(list, all[i])
			continue
		}
		list = append(list, all[i]+"="+all[i+1])
		i++
	}
	return list
}

// switches are the flags without a value.
var switches = []string{"--breakdown"}

// check turns a selection into a command. It refuses what is wrong as the
// command would, and whatever might name a file.
func (s *selection) check() (*command, error) {
	e, err := experiment.Find(s.Experiment)
	if err != nil {
		return nil, wrong("experiment", err)
	}
	if !slices.Contains(views, s.View) {
		return nil, wrong("view", fmt.Errorf("%q, expected one of %s", s.View, strings.Join(views, ", ")))
	}
	c := &command{experiment: e}
	if s.View == viewBreakdown {
		if _, err := e.Broken(); err != nil {
			return nil, wrong("breakdown", err)
		}
		c.words = append(c.words, "--breakdown")
	}
	if s.View == viewTimeline && e.Untraced {
		return nil, wrong("trace", fmt.Errorf("a point of %s takes several runs, so it has no timeline", e.Name))
	}
	if err := errors.Join(s.device(c), s.preset(c), s.choose(c), s.fill(c)); err != nil {
		return nil, err
	}
	return c, nil
}

// device adds the devices, and what changes in them.
func (s *selection) device(c *command) error {
	given := len(s.Profiles) > 0 || len(s.Set) > 0 || s.Seed != ""
	if c.experiment.Deviceless && given {
		return wrong("profile", fmt.Errorf("%s simulates no device, so it has no profile", c.experiment.Name))
	}
	for _, name := range s.Profiles {
		if names := profile.Names(); !slices.Contains(names, name) {
			return wrong("profile", fmt.Errorf("no embedded profile %q, expected one of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names)))
		}
	}
	if len(s.Profiles) > 0 {
		c.words = append(c.words, "--profile", strings.Join(s.Profiles, ","))
	}
	for _, text := range s.Set {
		if !assignment.MatchString(text) {
			return wrong("set", fmt.Errorf("%q, expected PATH=VALUE, such as hpu.cores=8", text))
		}
		c.words = append(c.words, "--set", text)
	}
	if s.Seed != "" {
		if _, err := strconv.ParseUint(s.Seed, 10, 64); err != nil {
			return wrong("seed", fmt.Errorf("%q, expected a whole number", s.Seed))
		}
		c.words = append(c.words, "--seed", s.Seed)
	}
	return nil
}

// assignment is the form of a value of a profile. No field of a profile names a
// file.
var assignment = regexp.MustCompile(`^[a-z][a-z0-9_.]*=[^\x00-\x1f\x7f]{1,500}$`)

// preset adds the published choice of values.
func (s *selection) preset(c *command) error {
	if s.Preset == "" {
		return nil
	}
	if _, err := c.experiment.Preset(s.Preset); err != nil {
		return wrong("preset", err)
	}
	c.words = append(c.words, "--experiment", s.Preset)
	return nil
}

// choose adds the values of the axes, in the order of the experiment.
func (s *selection) choose(c *command) error {
	sweep, err := experiment.New(c.experiment)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Axes)) {
		if a := c.experiment.Axis(name); a == nil || a.Fixed() {
			errs = append(errs, wrong(name, fmt.Errorf("%s has no such axis", c.experiment.Name)))
		}
	}
	for i := range c.experiment.Axes {
		a := &c.experiment.Axes[i]
		list, given := s.Axes[a.Name]
		if !given || a.Fixed() {
			continue
		}
		err := sweep.Choose(a.Name, list)
		if err == nil && a.Kind == report.Text && len(a.Of) == 0 && !plain.MatchString(list) {
			err = fmt.Errorf("%q, expected letters, digits and any of , . : _ + -; the page reads no files", list)
		}
		errs = append(errs, wrong(a.Name, err))
		c.axes = append(c.axes, "--"+a.Name, list)
	}
	return errors.Join(errs...)
}

// plain is the form of a text that may be anything. It is no path.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9,.:_+ -]{0,500}$`)

// moduleName is the form of the name of a module, and moduleID of its hash.
var (
	moduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\.wasm$`)
	moduleID   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// fill adds the modules. The command itself checks that they fit.
func (s *selection) fill(c *command) error {
	slots := experiment.Describe(c.experiment).Slots
	names := make(map[string]string)
	for _, slot := range slices.Sorted(maps.Keys(s.Modules)) {
		m := s.Modules[slot]
		known := false
		for i := range slots {
			known = known || slots[i].Name == slot
		}
		switch {
		case !known:
			return wrong("handler", fmt.Errorf("no slot %q in %s", slot, c.experiment.Name))
		case !moduleID.MatchString(m.ID) || !moduleName.MatchString(m.Name):
			return wrong("handler", fmt.Errorf("%q, expected a module that was sent, with a name such as filter.wasm", m.Name))
		case names[m.Name] != "" && names[m.Name] != m.ID:
			return wrong("handler", fmt.Errorf("two different modules are called %s, expected two names", m.Name))
		}
		names[m.Name] = m.ID
		c.words = append(c.words, "--handler", slot+"="+m.Name)
		c.modules = append(c.modules, m)
	}
	return nil
}
