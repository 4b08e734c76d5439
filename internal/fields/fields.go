// Package fields collects what is wrong with the fields of a Spec: every field that is out of its range, each error with the field's
// name in front.
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

// Between notes a value that is not from least to most.
func Between[T cmp.Ordered](e *Errors, field string, v, least, most T) {
	if v < least || v > most {
		*e = append(*e, fmt.Errorf("%s: %v, expected %v to %v", field, v, least, most))
	}
}

// OneOf notes a text that is none of those allowed.
func (e *Errors) OneOf(field, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		*e = append(*e, fmt.Errorf("%s: %q, expected %s", field, v, strings.Join(allowed, " or ")))
	}
}

// Add notes what is wrong with a field, if err is not nil.
func (e *Errors) Add(field string, err error) {
	if err != nil {
		*e = append(*e, fmt.Errorf("%s: %w", field, err))
	}
}

// Below notes what a section's own Validate has found, joined errors one by one, with the section's path in front of each.
func (e *Errors) Below(section string, err error) {
	several, are := err.(interface{ Unwrap() []error })
	switch {
	case are:
		for _, one := range several.Unwrap() {
			e.Below(section, one)
		}
	case err != nil:
		*e = append(*e, fmt.Errorf("%s.%w", section, err))
	}
}

// Join returns everything noted as one error, nil if there is nothing.
func (e Errors) Join() error { return errors.Join(e...) }
