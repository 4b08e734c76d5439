// Package fields collects what is wrong with the fields of a Spec: every field
// that is out of its range, each error with the field's name in front.
package fields

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors are what is wrong with the fields of a Spec.
type Errors []error

// Wrong is what is wrong with an option of a package, which those who take it
// from a user call by another name: a flag.
type Wrong struct {
	Package string
	Option  string
	Err     error
}

// Error names the package and the option.
func (w *Wrong) Error() string { return w.Package + ": " + w.Option + ": " + w.Err.Error() }

// Unwrap returns what is wrong.
func (w *Wrong) Unwrap() error { return w.Err }

// Renamed is err, or each of the errors that it joins, with an option named by
// prefix and the name that it has there; options that names does not have stay.
func Renamed(err error, prefix string, names map[string]string) error {
	all := Each(err)
	for i, one := range all {
		if w := (*Wrong)(nil); errors.As(one, &w) && names[w.Option] != "" {
			all[i] = fmt.Errorf("%s%s: %w", prefix, names[w.Option], w.Err)
		}
	}
	return errors.Join(all...)
}

// Each lists the errors that err joins, recursively; err itself if it joins
// none or says more.
func Each(err error) (list []error) {
	several, are := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !are || errors.Join(several.Unwrap()...).Error() != err.Error():
		return []error{err}
	}
	for _, e := range several.Unwrap() {
		list = append(list, Each(e)...)
	}
	return list
}

// Between notes a value that is not from least to most.
func Between[T cmp.Ordered](e *Errors, field string, v, least, most T) {
	if v < least || v > most {
		*e = append(*e, fmt.Errorf("%s: %v, expected %v to %v", field, v, least, most))
	}
}

// OneOf notes a text that is none of those allowed.
func (e *Errors) OneOf(field, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		*e = append(*e, fmt.Errorf("%s: %q, expected %s%s", field, v, strings.Join(allowed, " or "), DidYouMean(v, allowed)))
	}
}

// Add notes what is wrong with a field, if err is not nil.
func (e *Errors) Add(field string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("%s: %w", field, err))
	}
}

// Below notes what a section's own Validate has found, joined errors one by
// one, with the section's path in front of each.
func (e *Errors) Below(section string, err error) {
	for _, one := range Each(err) {
		*e = append(*e, fmt.Errorf("%s.%w", section, one))
	}
}

// Join returns everything noted as one error, nil if there is nothing.
func (e Errors) Join() error { return errors.Join(e...) }
