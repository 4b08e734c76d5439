package strictyaml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/visible"
)

// Error is an error in a text, or about the value at a path in it.
type Error struct {
	File string // name of the text in messages; "": it has no name
	Line int    // 0: unknown
	Path string // for example programs[0].steps[2].put.to; "": the text as a whole
	Err  error
}

// Error returns "file:line: path: error", without unknown parts; "line 3: " if
// there is a line but no file.
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
	return visible.Line(b.String() + e.Err.Error()) // it quotes the text that it is about
}

// Unwrap returns the error without its place.
func (e *Error) Unwrap() error { return e.Err }

// Errors lists all errors in a text.
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

// Damaged reports whether there is an error at a path, below it or above it.
// Further errors about the path would only follow from that one. The path of an
// error may be several, with commas between.
func (e Errors) Damaged(path string) bool {
	return slices.ContainsFunc(e, func(one *Error) bool {
		return slices.ContainsFunc(strings.Split(one.Path, ", "), func(at string) bool { return below(path, at) || below(at, path) })
	})
}

// below reports whether path equals other or leads on from it.
func below(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || other == "" || rest[0] == '.' || rest[0] == '[')
}
