package scenario

import (
	"errors"
	"slices"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// FieldError is something wrong with a value of a scenario.
type FieldError struct {
	File string // "" if the scenario is of no file
	Line int    // 0: unknown
	Path string // such as programs[0].steps[2].put.to
	Err  error
}

// Error is file:line: path: what is wrong.
func (e *FieldError) Error() string { return (*strictyaml.Error)(e).Error() }

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

// Parse reads a scenario. The file's name is for messages. All errors, of type
// *FieldError, are joined.
func Parse(file string, data []byte) (*Spec, error) {
	s, err := parse(file, data, nil)
	if err != nil {
		return nil, err
	}
	return s, s.unread()
}

// parse returns what could be read, and notes what could not; an error is one
// of the text as a whole. values are those of parameters in place of the
// scenario's.
func parse(file string, data []byte, values map[string]string) (*Spec, error) {
	root, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, textError(file, err)
	}
	r := strictyaml.Reader{File: file, Lines: make(map[string]int)}
	s := &Spec{file: file, text: data, lines: r.Lines}
	parameters := blockOf(root, file)
	if err := parameters.give(values); err != nil {
		return nil, &FieldError{File: file, Path: "parameters", Err: err}
	}
	parameters.insert(&r, root, "")
	// what is wrong with parameters comes before what follows from it
	first := slices.Concat(parameters.wrong, r.Errors)
	r.Errors = nil
	r.Read(root, s)
	r.Errors = append(first, slices.DeleteFunc(r.Errors, func(e *strictyaml.Error) bool {
		// said already
		return slices.ContainsFunc(first, func(m *strictyaml.Error) bool { return m.Path == e.Path })
	})...)
	s.Parameters = parameters.Parameters
	s.wrong, s.follows = r.Errors, parameters.missing
	return s, nil
}

// unread are the errors of what could not be read.
func (s *Spec) unread() error {
	var errs []error
	for _, e := range s.wrong {
		if !s.follows[e.Path] {
			errs = append(errs, (*FieldError)(e))
		}
	}
	return errors.Join(errs...)
}

// textError is an error of the YAML reader as one of the file.
func textError(file string, err error) error {
	var wrong *strictyaml.Error
	switch {
	case errors.Is(err, strictyaml.ErrEmpty):
		return &FieldError{File: file, Err: errors.New("the file is empty, expected a scenario")}
	case errors.As(err, &wrong):
		return (*FieldError)(wrong)
	}
	return &FieldError{File: file, Err: err}
}
