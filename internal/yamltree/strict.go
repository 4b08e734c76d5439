package yamltree

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/size"
)

// Strict compares trees with the types that they are to be decoded into and collects what is wrong with them.
type Strict struct {
	Name     string // of the text, for messages
	Lineless bool   // the text has no lines, as an override
	// ByName are the types of which a text may have a name in the place of the fields: the function returns the tree that a name stands
	// for, and Check puts it there; if it is nil, the name stays.
	ByName map[reflect.Type]func(name string) (*yaml.Node, error)

	problems []problem
}

// problem is something wrong with the value at a path.
type problem struct {
	path string
	err  error // with the place
}

// Decode decodes a mapping into the struct that into points at. Errors, joined, name the place of everything that is wrong, as
// "name:line: path", and what was expected there.
func Decode(name string, tree *yaml.Node, into any) error {
	s := Strict{Name: name}
	if s.Check(tree, reflect.TypeOf(into).Elem()); len(s.problems) > 0 {
		return errors.Join(s.Errors()...)
	}
	if err := tree.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Check looks at a tree as a value of type t, a struct: unknown fields, fields given twice, values of another form, numbers that are not
// whole. What is wrong is noted and cut out, so that the rest can be decoded.
func (s *Strict) Check(tree *yaml.Node, t reflect.Type) { s.check(tree, t, "") }

// Errors are what is wrong with the trees, as "name:line: path" and what was expected there.
func (s *Strict) Errors() (errs []error) {
	for _, p := range s.problems {
		errs = append(errs, p.err)
	}
	return errs
}

// Add takes what another has found for this one's own, so that Beside knows of it.
func (s *Strict) Add(other *Strict) { s.problems = append(s.problems, other.problems...) }

func (s *Strict) fail(n *yaml.Node, path, format string, args ...any) {
	path = strings.TrimSuffix(path, ".")
	place := fmt.Sprintf("%s:%d", s.Name, n.Line)
	if s.Lineless {
		place = s.Name
	}
	s.problems = append(s.problems, problem{path, fmt.Errorf("%s: %s: %w", place, path, fmt.Errorf(format, args...))})
}

// check looks at n as a value of type t, at a path that ends in a dot. What is wrong in mappings is noted and cut out, so that the rest
// can be decoded; false: n as a whole is wrong.
func (s *Strict) check(n *yaml.Node, t reflect.Type, path string) bool {
	if find := s.ByName[t]; find != nil && n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
		if named, ok := s.find(n, find, path); !ok || !named {
			return ok
		}
	}
	switch reflect.New(t).Interface().(type) {
	case yaml.Unmarshaler, encoding.TextUnmarshaler, interface{ UnmarshalYAML(func(any) error) error }:
		return s.value(n, t, path)
	}
	switch {
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		s.fields(n, t, path)
		return true
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		whole := true
		for i := 0; i+1 < len(n.Content); i += 2 {
			whole = s.check(n.Content[i+1], t.Elem(), path+n.Content[i].Value+".") && whole
		}
		return whole
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		before := len(s.problems)
		for i, item := range n.Content {
			s.check(item, t.Elem(), itemPath(path, i))
		}
		return len(s.problems) == before
	}
	return s.value(n, t, path)
}

// find puts what a name stands for in its place, unless that is nothing (found is false) or an error.
func (s *Strict) find(n *yaml.Node, find func(name string) (*yaml.Node, error), path string) (found, ok bool) {
	tree, err := find(n.Value)
	if several, are := err.(interface{ Unwrap() []error }); are { //nolint:errorlint // joined errors are told one by one
		for _, e := range several.Unwrap() {
			s.fail(n, path, "%w", e)
		}
	} else if err != nil {
		s.fail(n, path, "%w", err)
	}
	if err != nil || tree == nil {
		return false, err == nil
	}
	*n = *tree
	return true, true
}

// fields checks the keys of a struct.
func (s *Strict) fields(n *yaml.Node, t reflect.Type, path string) {
	fields, names := Fields(t)
	seen := map[string]bool{}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		field, known := fields[key.Value]
		switch {
		case !known:
			s.fail(key, path+key.Value, "unknown field, expected one of %s", strings.Join(names, ", "))
		case seen[key.Value]:
			s.fail(key, path+key.Value, "given twice")
		case field.Bytes && !s.bytes(n.Content[i+1], path+key.Value):
		case s.check(n.Content[i+1], field.Type, path+key.Value+"."):
			kept = append(kept, key, n.Content[i+1])
		}
		seen[key.Value] = true
	}
	n.Content = kept
}

// bytes puts the number in the place of a size with a unit, "64KiB".
func (s *Strict) bytes(n *yaml.Node, path string) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return true
	}
	v, err := size.Parse(n.Value)
	if err != nil {
		s.fail(n, path, "%w", err)
		return false
	}
	n.Tag, n.Style, n.Value = "!!int", 0, strconv.FormatInt(v, 10)
	return true
}

// value decodes a value by itself.
func (s *Strict) value(n *yaml.Node, t reflect.Type, path string) bool {
	into := reflect.New(t).Interface()
	if CheckWhole(n, into) != nil {
		s.fail(n, path, "%s, expected a whole number", shown(n))
		return false
	}
	err := n.Decode(into)
	var types *yaml.TypeError
	if errors.As(err, &types) {
		err = fmt.Errorf("%s, expected %s", shown(n), wanted(t))
	}
	if err != nil {
		s.fail(n, path, "%w", err)
	}
	return err == nil
}

// Beside returns the errors of err that are not about a path at which there is a problem already.
func (s *Strict) Beside(err error) (errs []error) {
	if several, are := err.(interface{ Unwrap() []error }); are {
		for _, e := range several.Unwrap() {
			errs = append(errs, s.Beside(e)...)
		}
		return errs
	}
	if err == nil || slices.ContainsFunc(s.problems, func(p problem) bool { return strings.HasPrefix(err.Error(), p.path) }) {
		return nil
	}
	return []error{err}
}

// itemPath is the path to the fields of an item of a list.
func itemPath(path string, i int) string {
	return fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i)
}

// Field is a field of a struct. Those tagged `unit:"B"` are whole numbers of bytes, which a text may give with a unit.
type Field struct {
	Type  reflect.Type
	Bytes bool
}

// Fields lists the YAML fields of a struct.
func Fields(t reflect.Type) (fields map[string]Field, names []string) {
	fields = map[string]Field{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			inner, more := Fields(f.Type)
			for _, k := range more {
				fields[k] = inner[k]
			}
			names = append(names, more...)
			continue
		}
		if name != "" && name != "-" {
			fields[name] = Field{f.Type, f.Tag.Get("unit") == "B"}
			names = append(names, name)
		}
	}
	return fields, names
}

// shown is a value as it stands in the text.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields with values"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}

// wanted says what a value of a type looks like.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "fields with values"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	}
	return "a whole number"
}
