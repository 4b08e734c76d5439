package experiment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Axis is a parameter of an experiment. All its texts are written as users
// write them, with units: "64KiB", "1.5us".
type Axis struct {
	Name   string      // its name and flag, --size: letters, 0-9 and -, a letter first
	Column string      // the column in tables; "": Name with _ for -
	Kind   report.Kind // Text, Count, Size, Duration, Number, Share or Flag
	Unit   string      // of the column: for times one of ps, ns, us, ms, s ("": ns), for numbers any
	Each   string      // what a number counts, for example "HPUs"; see report.Column
	Help   string      // one sentence: what varies

	Of       []string // all values; empty: from Least to Most, for texts any
	Least    string   // the smallest value; "": 0 for counts, sizes and times, else none
	Most     string   // the largest value; "": none
	Multiple string   // values are multiples of it; "": 1 for counts and sizes, else none

	Fractions bool // counts may be decimal fractions, too: float64

	Default string // the list of values by default; "": Of, or Least
	Field   string // the field of the profile that the axis sets, such as "hpu.cores"; "": none
	Terms   []Term // what each value changes elsewhere, in the order of Of; nil: nothing
	// the number of the handlers' state that the axis sets; a user's module
	// without it runs at one value of the axis; "": none
	State string

	written map[any]string // of Parameter: values as the user wrote them; nil: no parameter
}

// column describes the values of the axis in tables.
func (a *Axis) column() report.Column {
	c := report.Column{Name: a.Column, Kind: a.Kind, Unit: a.Unit, Each: a.Each, Help: a.Help, Fractions: a.Fractions}
	if c.Name == "" {
		c.Name = strings.ReplaceAll(a.Name, "-", "_")
	}
	if c.Kind == report.Duration && c.Unit == "" {
		c.Unit = "ns"
	}
	return c
}

// columnName makes a column name from a path.
func columnName(path string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, path)
}

// Fixed reports whether the axis has one value only, so that nobody can choose.
func (a *Axis) Fixed() bool {
	return len(a.Of) == 1 || len(a.Of) == 0 && a.Least != "" && a.Least == a.Most
}

// axisKinds are the kinds an axis may have.
var axisKinds = []report.Kind{report.Text, report.Count, report.Size, report.Duration, report.Number, report.Share, report.Flag}

// parse reads one value. It does not check the range.
func (a *Axis) parse(text string) (any, error) {
	text = strings.TrimSpace(text)
	switch a.Kind {
	case report.Text:
		return text, nil
	case report.Count:
		n, err := strconv.Atoi(text)
		if err != nil && a.Fractions {
			return parseDecimal(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, nil
	case report.Size:
		n, err := sim.ParseSize(text)
		return int(n), err
	case report.Duration:
		return parsed(sim.ParseTime(text))
	case report.Flag:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q: expected true or false", text)
		}
		return b, nil
	}
	percent, isPercent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
	if err != nil || f-f != 0 || isPercent && a.Kind != report.Share {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	if isPercent {
		f /= 100
	}
	return f, nil
}

func parsed[T any](v T, err error) (any, error) { return v, err }

// write returns exactly the text that parse reads as this value.
func (a *Axis) write(v any) string {
	if text, is := a.written[v]; is {
		return text
	}
	switch v := v.(type) {
	case sim.Time:
		return strings.ReplaceAll(v.String(), " ", "")
	case float64:
		if size := math.Abs(v); v == 0 || size >= 1e-6 && size < 1e21 {
			return strconv.FormatFloat(v, 'f', -1, 64) // as people write it
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case int:
		if a.Kind == report.Size {
			return strings.ReplaceAll(sim.Size(v).String(), " ", "")
		}
	}
	return fmt.Sprint(v)
}

// show writes a value that stands alone: a number with what it counts, "barrier
// true".
func (a *Axis) show(v any) string {
	if a.Field != "" && a.Name == a.Field { // added by Sweep.Set
		return a.Name + " " + a.Plain(v)
	}
	if a.written != nil {
		return a.Name + " " + a.write(v)
	}
	switch v := v.(type) {
	case string:
		return v
	case sim.Time:
		return v.String()
	case int:
		if a.Kind == report.Size {
			return sim.Size(v).String()
		}
		if a.Unit != "" {
			return a.title() + " " + a.Plain(v)
		}
		what := a.Each
		if what == "" {
			what = a.title()
		}
		return fmt.Sprintf("%d %s", v, report.Counted(v, what))
	case bool:
		return a.title() + " " + a.Plain(v)
	case float64:
		if a.Fractions {
			return a.title() + " " + a.Plain(v)
		}
	}
	return a.Plain(v) + " " + a.title()
}

// title is the name of the axis in text.
func (a *Axis) title() string { return strings.ReplaceAll(a.column().Name, "_", " ") }

// flag is how users choose the values of the axis.
func (a *Axis) flag() string {
	if a.written != nil {
		return "--param " + a.Name
	}
	return "--" + a.Name
}

// take converts a value that a program gives: a value of the kind's type, or
// text.
func (a *Axis) take(v any) (any, error) {
	if text, is := v.(string); is && a.Kind != report.Text {
		var err error
		if v, err = a.parse(text); err != nil {
			return nil, err
		}
	}
	if size, is := v.(sim.Size); is && a.Kind == report.Size {
		v = int(size)
	}
	if !a.column().Holds(v) || v == nil {
		return nil, fmt.Errorf("a %T, expected a value of kind %v", v, a.Kind)
	}
	return v, a.check(v)
}

// check returns an error if the axis does not have the value.
func (a *Axis) check(v any) error {
	if len(a.Of) > 0 {
		for _, text := range a.Of {
			if one, err := a.parse(text); err == nil && one == v {
				return nil
			}
		}
		if s, is := v.(string); is {
			return fmt.Errorf("unknown value %q, expected one of %s%s", s, strings.Join(a.Of, ", "), fields.DidYouMean(s, a.Of))
		}
		return fmt.Errorf("%s, expected one of %s", a.write(v), strings.Join(a.Of, ", "))
	}
	if v == "" {
		return fmt.Errorf("an empty %s", a.title())
	}
	x, isNumber := number(v)
	if !isNumber {
		return nil
	}
	least, most, _ := a.bounds()
	if below := least != nil && x < least.(float64); below || most != nil && x > most.(float64) {
		return fmt.Errorf("%s, expected %s", a.Plain(v), a.span())
	}
	if a.Multiple != "" {
		unit, err := a.parse(a.Multiple)
		if m, _ := number(unit); err == nil && remainder(v, unit, x, m) != 0 {
			return fmt.Errorf("%s, expected a multiple of %s", a.Plain(v), a.Plain(unit))
		}
	}
	return nil
}

// remainder divides a value by the unit of Axis.Multiple and returns the rest.
// x and m are both as numbers.
func remainder(v, unit any, x, m float64) float64 {
	switch v := v.(type) {
	case int:
		return float64(v % unit.(int))
	case sim.Time:
		return float64(v % unit.(sim.Time))
	}
	n := x / m
	return n - float64(int64(n+0.5))
}

// number converts a value to a number. ok is false for text and flags.
func number(v any) (x float64, ok bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case sim.Time:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// bounds returns the smallest and the largest value. nil: there is none.
func (a *Axis) bounds() (least, most any, err error) {
	one := func(text string) (any, error) {
		if text == "" {
			return nil, nil //nolint:nilnil // there is no bound
		}
		v, err := a.parse(text)
		if err != nil {
			return nil, err
		}
		x, _ := number(v)
		return x, nil
	}
	if least, err = one(a.Least); err != nil {
		return nil, nil, fmt.Errorf("the least value: %w", err)
	}
	if least == nil && slices.Contains([]report.Kind{report.Count, report.Size, report.Duration}, a.Kind) {
		least = 0.0
	}
	if most, err = one(a.Most); err != nil {
		return nil, nil, fmt.Errorf("the largest value: %w", err)
	}
	return least, most, nil
}

// Plain writes a value with its unit, for an error or a range.
func (a *Axis) Plain(v any) string {
	switch v := v.(type) {
	case sim.Time:
		return v.String()
	case int:
		if a.Kind == report.Size {
			return sim.Size(v).String()
		}
		return strings.TrimSpace(fmt.Sprint(v) + " " + a.Unit)
	case float64:
		if a.Kind == report.Share {
			return strconv.FormatFloat(100*v, 'g', 12, 64) + "%" // decimal fractions as people write them
		}
		return strings.TrimSpace(a.write(v) + " " + a.Unit)
	}
	return fmt.Sprint(v)
}

// span writes the range of the values, for a sentence.
func (a *Axis) span() string {
	end := func(text string) string {
		v, err := a.parse(text)
		if err != nil {
			return text
		}
		return a.Plain(v)
	}
	switch least, most, _ := a.bounds(); {
	case least == nil && most == nil:
		return "a number"
	case most == nil && a.Least == "":
		return "0 or more"
	case most == nil:
		return "at least " + end(a.Least)
	case least == nil:
		return "at most " + end(a.Most)
	case a.Least == "":
		return end("0") + " to " + end(a.Most)
	}
	return end(a.Least) + " to " + end(a.Most)
}

// Parse reads a list of values as ParseList does. It checks each value, and
// refuses a value that stands there twice.
func (a *Axis) Parse(list string) ([]any, error) {
	values, err := a.list(list)
	if err != nil {
		return nil, err
	}
	var errs []error
	seen := make(map[any]bool, len(values))
	for _, v := range values {
		if err := a.check(v); err != nil {
			errs = append(errs, err)
		} else if seen[v] {
			errs = append(errs, fmt.Errorf("%s is given twice", a.Plain(v)))
		}
		seen[v] = true
	}
	if more := len(errs) - mostErrors; more > 0 {
		errs = append(errs[:mostErrors], fmt.Errorf("and %d more", more))
	}
	return values, oneLine(errs)
}

// mostErrors is how many wrong values of a list an error names, and how many
// failures and warnings of points people see. Tables have all.
const mostErrors = 10

// oneLine joins the errors of a flag in one line.
func oneLine(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return fmt.Errorf("%w; %w", errs[0], oneLine(errs[1:]))
}

// list reads the values of a list.
func (a *Axis) list(list string) (values []any, err error) {
	switch a.Kind {
	case report.Count, report.Size:
		values, err := anys(ParseList(list, func(s string) (int, error) { return typed[int](a.wholes().parse(s)) }))
		if a.Fractions && err != nil {
			return decimals(list)
		}
		return values, err
	case report.Duration:
		return anys(ParseList(list, func(s string) (sim.Time, error) { return typed[sim.Time](a.parse(s)) }))
	case report.Number, report.Share:
		return anys(ParseList(list, func(s string) (float64, error) { return typed[float64](a.parse(s)) }))
	}
	for _, part := range texts(list) {
		v, err := a.parse(part)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// texts splits a list of texts. Numbers behind a value with a colon belong to
// it: "inter-mezz:3,1,2" is one value.
func texts(list string) (parts []string) {
	for part := range strings.SplitSeq(list, ",") {
		last := len(parts) - 1
		if _, err := strconv.Atoi(strings.TrimSpace(part)); err == nil && last >= 0 && strings.Contains(parts[last], ":") {
			parts[last] += "," + part
			continue
		}
		parts = append(parts, part)
	}
	return parts
}

func typed[T any](v any, err error) (T, error) {
	t, _ := v.(T)
	return t, err
}

func anys[T any](list []T, err error) ([]any, error) {
	values := make([]any, len(list))
	for i, v := range list {
		values[i] = v
	}
	return values, err
}

// DefaultList is the list of values by default.
func (a *Axis) DefaultList() string {
	switch {
	case a.Default != "":
		return a.Default
	case len(a.Of) > 0:
		return strings.Join(a.Of, ",")
	case a.Least == "" && a.Kind == report.Flag:
		return "false"
	}
	return a.Least
}

// Usage is the help text of the flag. The word in back quotes stands for the
// list.
func (a *Axis) Usage() string {
	if len(a.Of) > 0 {
		return "`LIST` of " + strings.Join(a.Of, ", ")
	}
	text := a.Help + ": `LIST`"
	if _, isNumber := number(a.zero()); isNumber && (a.Least != "" || a.Most != "") {
		text += " of values, " + a.span()
	}
	return text
}

// zero returns the zero value of the axis's type.
func (a *Axis) zero() any {
	switch a.Kind {
	case report.Text:
		return ""
	case report.Flag:
		return false
	case report.Duration:
		return sim.Time(0)
	case report.Count, report.Size:
		return 0
	}
	return 0.0
}

// texts writes values as Parse reads them.
func (a *Axis) texts(values []any) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = a.write(v)
	}
	return list
}
