// Package fields collects errors about the fields of a Spec: every field out of
// its range, with the field's name in front of each error.
package fields

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors are the errors about the fields of a Spec.
type Errors []error

// Wrong is an error about an option of a package. Callers that take the option
// from a user know it by another name, for example a flag.
type Wrong struct {
	Package string
	Option  string
	Err     error
}

// Error names the package and the option.
func (w *Wrong) Error() string { return w.Package + ": " + w.Option + ": " + w.Err.Error() }

// Unwrap returns the error about the option.
func (w *Wrong) Unwrap() error { return w.Err }

// Renamed returns err, or the errors that it joins, with options under their
// names for the user: prefix and the name in names. Options that are not in
// names keep their own.
func Renamed(err error, prefix string, names map[string]string) error {
	all := Each(err)
	for i, one := range all {
		if w := (*Wrong)(nil); errors.As(one, &w) && names[w.Option] != "" {
			all[i] = fmt.Errorf("%s%s: %w", prefix, names[w.Option], w.Err)
		}
	}
	return errors.Join(all...)
}

// Each lists the errors that err joins, recursively. It lists err itself if err
// joins none, or has a text of its own.
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

// OneOf notes a text that is not allowed.
func (e *Errors) OneOf(field, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		*e = append(*e, fmt.Errorf("%s: %q, expected %s%s", field, v, strings.Join(allowed, " or "), DidYouMean(v, allowed)))
	}
}

// Add notes an error about a field, if err is not nil.
func (e *Errors) Add(field string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("%s: %w", field, err))
	}
}

// Below notes the errors of a section's own Validate one by one, with the
// section's path in front of each.
func (e *Errors) Below(section string, err error) {
	for _, one := range Each(err) {
		*e = append(*e, fmt.Errorf("%s.%w", section, one))
	}
}

// Join returns everything noted as one error, nil if there is nothing.
func (e Errors) Join() error { return errors.Join(e...) }
