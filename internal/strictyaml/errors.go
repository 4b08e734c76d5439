package strictyaml

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Error is something wrong with a text, or with the value at a path in it.
type Error struct {
	File string // as messages name the text; "": it has no name
	Line int    // 0: unknown
	Path string // such as programs[0].steps[2].put.to; "": the text as a whole
	Err  error
}

// Error is "file:line: path: what is wrong", without what is not known; "line
// 3: " if there is a line but no file.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		b.WriteString(e.File + ": ")
	case e.Line > 0:
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	return b.String() + e.Err.Error()
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Errors is everything wrong with a text.
type Errors []*Error

// Each returns the errors, nil if there are none.
func (e Errors) Each() (errs []error) {
	for _, one := range e {
		errs = append(errs, one)
	}
	return errs
}

// Join returns all errors as one, nil if there are none.
func (e Errors) Join() error { return errors.Join(e.Each()...) }

// Damaged reports whether something at a path, below it or above it is wrong:
// what else is said of it would only follow. The path of an error may be
// several, with commas between.
func (e Errors) Damaged(path string) bool {
	return slices.ContainsFunc(e, func(one *Error) bool {
		return slices.ContainsFunc(strings.Split(one.Path, ", "), func(at string) bool { return below(path, at) || below(at, path) })
	})
}

// below reports whether a path is another or leads on from it.
func below(path, other string) bool {
	rest, is := strings.CutPrefix(path, other)
	return is && (rest == "" || other == "" || rest[0] == '.' || rest[0] == '[')
}
