package experiment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/report"
)

// taken are the flags of commands, which no axis may be named after.
var taken = []string{
	"profile", "set", "handler", "seed", "engine", "format", "all", "plot", "trace", "links", "pcap", "pcap-at", "topology", "waterfall", "experiment", "until", "event-limit", "time-limit", "memory-limit", "threads", "quiet", "help",
	"version", "output", "param", "points", "slots", "resume", "measure-missing", "part", "breakdown", "samples",
	"table", "over-open",
}

// Check returns everything that is wrong with the definition of an experiment.
// It takes the experiments of spinsim for right, since every command calls it
// and a look at them would take longer than the rest of its start. So change
// only a copy of them.
func (e *Experiment) Check() error {
	if slices.Contains(All(), e) {
		return nil // TestExperimentsAreRight
	}
	return e.examine()
}

// examine checks any experiment.
func (e *Experiment) examine() error {
	c := checker{e: e}
	c.names()
	for i := range e.Axes {
		c.axis(&e.Axes[i], i)
	}
	if len(c.errs) == 0 {
		for i := range e.Axes {
			c.terms(&e.Axes[i])
		}
	}
	if len(c.errs) == 0 { // the axes have columns, too
		c.columns()
	}
	if len(c.errs) == 0 {
		c.details()
		c.relatives()
		c.view()
		c.published()
		c.ledger()
		c.presets()
	}
	if len(c.errs) == 0 {
		return nil
	}
	name := e.Name
	if name == "" {
		name = "without a name"
	}
	for i := range c.errs {
		c.errs[i] = fmt.Errorf("experiment %s: %w", name, c.errs[i])
	}
	return errors.Join(c.errs...)
}

// checker collects errors in a definition.
type checker struct {
	e    *Experiment
	errs []error
}

func (c *checker) fail(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// isName reports whether s can be the name of an experiment or axis: a word of
// a command line.
func isName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

func (c *checker) names() {
	e := c.e
	if !isName(e.Name) {
		c.fail("name %q, expected a-z, 0-9 and -, a letter first", e.Name)
	}
	if len(e.Axes) == 0 {
		c.fail("no axes: what varies from point to point?")
	}
	if len(e.Columns) == 0 {
		c.fail("no columns: what is measured?")
	}
	if e.Run == nil {
		c.fail("no function Run that measures a point")
	}
	if e.Deviceless && (e.Memory == nil || e.Undivided == "" || len(e.Profiles)+len(e.Ledger) > 0 || e.Modules != nil || e.Slots != nil) {
		c.fail("without a device: expected Memory and Undivided, and neither Profiles, Ledger, Slots nor Modules")
	}
	if e.Failures != "" && e.detail(e.Failures) == nil {
		c.fail("Failures: no table %q", e.Failures)
	}
}

// details checks the further tables.
func (c *checker) details() {
	for i := range c.e.Details {
		d := &c.e.Details[i]
		fail := func(format string, args ...any) { c.fail("table %s: %w", d.Name, fmt.Errorf(format, args...)) }
		if !isName(d.Name) || d.Name == "rows" || d.Name == "answer" || d.Name == pointsTable || d.Name == "provenance" || slices.Contains(seal.Fields, d.Name) {
			c.fail("table %d: name %q, expected a-z, 0-9 and -, a letter first, and no field of a document", i+1, d.Name)
			continue
		}
		if _, found := c.e.column(d.Name); found || c.e.detail(d.Name) != d {
			fail("the name is taken")
		}
		if err := report.CheckColumns(append(detailColumns(c.e, d), provenance.Columns()...)); err != nil {
			fail("%w", err)
		}
	}
	if name := c.e.View.Programs; name != "" && c.e.detail(name) == nil {
		c.fail("View.Programs: no table %q", name)
	}
}

// presets checks the values and the views of presets.
func (c *checker) presets() {
	for i, p := range c.e.Presets {
		fail := func(format string, args ...any) { c.fail("preset %s: %w", p.Name, fmt.Errorf(format, args...)) }
		if !isName(p.Name) {
			c.fail("preset %d: name %q, expected a-z, 0-9 and -, a letter first", i+1, p.Name)
			continue
		}
		if slices.ContainsFunc(c.e.Presets[:i], func(q Preset) bool { return q.Name == p.Name }) {
			fail("there are two of that name")
		}
		for _, name := range slices.Sorted(maps.Keys(p.Values)) {
			if a := c.e.Axis(name); a == nil {
				fail("no axis %q", name)
			} else if _, err := a.Parse(p.Values[name]); err != nil {
				fail("axis %s: %w", name, err)
			}
		}
		if p.View != nil {
			seen := checker{e: &Experiment{Axes: c.e.Axes, Columns: c.e.Columns, Relative: c.e.Relative, View: *p.View}}
			seen.view()
			for _, err := range seen.errs {
				fail("%w", err)
			}
		}
	}
}

func (c *checker) axis(a *Axis, i int) {
	fail := func(format string, args ...any) {
		c.fail("axis %s: %w", a.Name, fmt.Errorf(format, args...))
	}
	if !isName(strings.ToLower(a.Name)) && a.written == nil { // flags of one letter may be capitals
		c.fail("axis %d: name %q, expected a-z, 0-9 and -, a letter first", i+1, a.Name)
		return
	}
	if slices.Contains(taken, a.Name) && a.written == nil {
		fail("the name is taken: commands have a flag --%s", a.Name)
	}
	if slices.ContainsFunc(c.e.Axes[:i], func(b Axis) bool { return b.Name == a.Name }) {
		fail("there are two of that name")
	}
	if !slices.Contains(axisKinds, a.Kind) {
		fail("kind %v, expected one of %v", a.Kind, axisKinds)
		return
	}
	if err := report.CheckColumns([]report.Column{a.column()}); err != nil {
		fail("%w", err)
	}
	for _, text := range a.Of {
		if v, err := a.parse(text); err != nil {
			fail("value %q: %w", text, err)
		} else if a.Kind == report.Text && (v != text || v == "" || strings.ContainsRune(text, ',')) {
			fail("value %q: expected text without a comma and without spaces around", text)
		}
	}
	if _, isNumber := number(a.zero()); !isNumber && a.Least+a.Most+a.Multiple != "" {
		fail("a range of values of kind %v", a.Kind)
		return
	}
	least, most, err := a.bounds()
	if err != nil {
		fail("%w", err)
	} else if least != nil && most != nil && least.(float64) > most.(float64) {
		fail("the least value %s is above the largest %s", a.Least, a.Most)
	}
	if v, err := a.parse(a.Multiple); a.Multiple != "" {
		if x, _ := number(v); err != nil || x <= 0 {
			fail("a multiple of %q, expected a value above 0", a.Multiple)
			return
		}
	}
	if _, err := a.initial(); err != nil {
		fail("values by default %q: %w", a.DefaultList(), err)
	}
}

func (c *checker) columns() {
	own := c.e.TableColumns()
	if err := report.CheckColumns(append(c.e.TableColumns(), provenance.Columns()...)); err != nil {
		c.fail("%w", err)
		return
	}
	names := map[string]bool{}
	for _, column := range own {
		if names[column.Name] {
			c.fail("two columns of the name %s", column.Name)
		}
		names[column.Name] = true
	}
}

func (c *checker) relatives() {
	for _, r := range c.e.Relative {
		i := c.e.axis(r.Axis)
		of, found := c.e.column(r.Of)
		switch {
		case !slices.ContainsFunc(c.e.Columns, func(c report.Column) bool { return c.Name == r.Of }) || !found:
			c.fail("column %s is relative to %q, which is none of Columns", r.Column.Name, r.Of)
		case of.Kind == report.Text || of.Kind == report.Flag:
			c.fail("column %s is relative to %s, which has no numbers", r.Column.Name, r.Of)
		case !slices.Contains([]report.Kind{report.Ratio, report.Share, report.Change}, r.Column.Kind):
			c.fail("column %s is relative and of kind %v, expected %v, %v or %v", r.Column.Name, r.Column.Kind, report.Ratio, report.Share, report.Change)
		case i < 0:
			c.fail("column %s is relative to a point along %q, which is none of the axes", r.Column.Name, r.Axis)
		default:
			c.base("column "+r.Column.Name, &c.e.Axes[i], r.Base)
		}
	}
}

// base checks a value of an axis that others are compared with.
func (c *checker) base(what string, a *Axis, text string) {
	v, err := a.parse(text)
	if err == nil {
		err = a.check(v)
	}
	if err != nil {
		c.fail("%s: base %q of axis %s: %w", what, text, a.Name, err)
	}
}

func (c *checker) view() {
	v := &c.e.View
	known := func(what string, columns ...string) {
		for _, name := range columns {
			if _, found := c.e.column(name); !found {
				c.fail("%s: no column %q", what, name)
			}
		}
	}
	if v.Value != "" && !slices.ContainsFunc(c.e.Columns, func(c report.Column) bool { return c.Name == v.Value }) {
		c.fail("View.Value: %q is none of Columns", v.Value)
	}
	if v.X != "" {
		known("View.X", v.X)
	}
	if e := c.e; e.Followed != "" {
		known("Followed", e.Followed)
	}
	known("View.Summary", v.Summary...)
	known("View.Parts", v.Parts...)
	for _, name := range v.Quiet {
		if c.e.axis(name) < 0 {
			c.fail("View.Quiet: no axis %q", name)
		}
	}
	for i, name := range v.Series {
		if c.e.axis(name) < 0 {
			c.fail("View.Series: no axis %q", name)
			return
		}
		if slices.Contains(v.Series[:i], name) {
			c.fail("View.Series: %s is named twice", name)
		}
	}
	if v.Base != "" && len(v.Series) == 0 {
		c.fail("View.Base: %q, but there is no axis in View.Series", v.Base)
	} else if v.Base != "" {
		c.base("View.Base", c.e.Axis(v.Series[0]), v.Base)
	}
}

func (c *checker) ledger() {
	for _, r := range c.e.Ledger {
		fail := func(format string, args ...any) {
			c.fail("row %s of the ledger: %w", r.ID, fmt.Errorf(format, args...))
		}
		set := 0
		for _, is := range []bool{r.Column != "", r.Ours != nil, r.Holds != nil} {
			if is {
				set++
			}
		}
		switch column, found := c.e.column(r.Column); {
		case set != 1:
			fail("%d of Column, Ours and Holds are set, expected one", set)
		case r.Column == "" && r.How == "":
			fail("no How")
		case r.Column != "" && !found:
			fail("no column %q", r.Column)
		case r.Column != "":
			row, err := r.row(c.e)
			if err == nil {
				_, err = factorTo(column, row.Unit)
			}
			if err != nil {
				fail("%w", err)
			}
		}
	}
}

func (c *checker) published() {
	for i, p := range c.e.Published {
		fail := func(format string, args ...any) { c.fail("published number %d: %w", i+1, fmt.Errorf(format, args...)) }
		column, found := c.e.column(p.Column)
		switch {
		case !found:
			fail("no column %q", p.Column)
		case column.Kind == report.Text || column.Kind == report.Flag:
			fail("column %s has no numbers", p.Column)
		}
		for _, beside := range report.PublishedColumns(column) {
			if _, taken := c.e.column(beside.Key()); taken {
				fail("its place is a column %s, but there is one of that name", beside.Key())
			}
		}
		if p.Source == "" && c.e.Source == "" {
			fail("no source")
		}
		for _, is := range slices.Concat(p.At, p.With) {
			at, found := c.e.column(is.Column)
			if !found {
				fail("no column %q", is.Column)
			} else if !at.Holds(is.Value) {
				fail("column %s of kind %v has no value that is a %T", is.Column, at.Kind, is.Value)
			}
		}
	}
}

// terms checks the terms of an axis.
func (c *checker) terms(a *Axis) {
	fail := func(format string, args ...any) { c.fail("axis %s: %w", a.Name, fmt.Errorf(format, args...)) }
	if len(a.Terms) == 0 {
		return
	}
	if len(a.Terms) != len(a.Of) {
		fail("%d terms for %d values", len(a.Terms), len(a.Of))
		return
	}
	for i, t := range a.Terms {
		if i == 0 && len(t.Values)+len(t.Set) > 0 {
			fail("the first value, %s, changes something", a.Of[0])
		}
		if i > 0 && t.Help == "" {
			fail("nothing says what %s is", a.Of[i])
		}
		for name, text := range t.Values { //lint:maporder any of several errors is as good
			other := c.e.Axis(name)
			if other == nil || other == a || other.Terms != nil {
				fail("%s changes %q, which is no other axis without terms", a.Of[i], name)
				continue
			}
			if v, err := other.parse(text); err != nil || other.check(v) != nil {
				fail("%s changes axis %s to %q, which is none of its values", a.Of[i], name, text)
			}
		}
		for _, set := range t.Set {
			if field, _, ok := strings.Cut(set, "="); !ok || slices.ContainsFunc(c.e.Axes, func(o Axis) bool { return o.Field == field }) {
				fail("%s sets %q, expected path=value of a field that no axis has", a.Of[i], set)
			}
		}
	}
}
