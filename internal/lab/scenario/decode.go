package scenario

import (
	"errors"
	"slices"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// FieldError is an error in a value of a scenario.
type FieldError struct {
	File string // "" if the scenario is not from a file
	Line int    // 0: unknown
	Path string // such as programs[0].steps[2].put.to
	Err  error
}

// Error returns "file:line: path: error".
func (e *FieldError) Error() string { return (*strictyaml.Error)(e).Error() }

// Unwrap returns the error without its place.
func (e *FieldError) Unwrap() error { return e.Err }

// Parse reads a scenario. The file name is for messages. It joins all errors,
// which are of type *FieldError.
func Parse(file string, data []byte) (*Spec, error) {
	s, err := parse(file, data, nil)
	if err != nil {
		return nil, err
	}
	return s, s.unread()
}

// parse returns the parts that could be read, and notes the errors of the
// others. It returns an error if the text as a whole is wrong. values replace
// the scenario's values of parameters.
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
	// errors in parameters come before the errors that follow from them
	first := slices.Concat(parameters.wrong, r.Errors)
	r.Errors = nil
	r.Read(root, s)
	r.Errors = append(first, slices.DeleteFunc(r.Errors, func(e *strictyaml.Error) bool {
		// reported already
		return slices.ContainsFunc(first, func(m *strictyaml.Error) bool { return m.Path == e.Path })
	})...)
	s.Parameters = parameters.Parameters
	s.wrong, s.follows, s.uses = r.Errors, parameters.missing, parameters.uses
	return s, nil
}

// unread returns the errors of the parts that could not be read.
func (s *Spec) unread() error {
	var errs []error
	for _, e := range s.wrong {
		if !s.follows[e.Path] {
			errs = append(errs, (*FieldError)(e))
		}
	}
	return errors.Join(errs...)
}

// textError turns an error of the YAML reader into an error of the file.
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
