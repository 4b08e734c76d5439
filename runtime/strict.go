package runtime

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/yamltree"
)

// decodeTree decodes a mapping into the struct that into points at. Errors, joined, name the place of everything that is wrong, as
// "name:line: path", and what was expected there.
func decodeTree(name string, tree *yaml.Node, into any) error {
	s := strict{name: name}
	s.check(tree, reflect.TypeOf(into).Elem(), "")
	if len(s.problems) > 0 {
		return errors.Join(s.errors()...)
	}
	if err := tree.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// strict collects what is wrong with a tree.
type strict struct {
	name     string
	lineless bool // the text is an override, which has no lines
	problems []problem
}

// problem is something wrong with the value at a path.
type problem struct {
	path string
	err  error // with the place
}

func (s *strict) errors() (errs []error) {
	for _, p := range s.problems {
		errs = append(errs, p.err)
	}
	return errs
}

func (s *strict) fail(n *yaml.Node, path, format string, args ...any) {
	path = strings.TrimSuffix(path, ".")
	place := fmt.Sprintf("%s:%d", s.name, n.Line)
	if s.lineless {
		place = s.name
	}
	s.problems = append(s.problems, problem{path, fmt.Errorf("%s: %s: %w", place, path, fmt.Errorf(format, args...))})
}

// check looks at n as a value of type t, at a path that ends in a dot. What is wrong in mappings is noted and cut out, so that the rest
// can be decoded; false: n as a whole is wrong.
func (s *strict) check(n *yaml.Node, t reflect.Type, path string) bool {
	if t == reflect.TypeFor[CostsRef]() && n.Kind == yaml.MappingNode {
		t = reflect.TypeFor[hpu.CostTable]()
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

// fields checks the keys of a struct.
func (s *strict) fields(n *yaml.Node, t reflect.Type, path string) {
	fields, names := fieldsOf(t)
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
		case field.bytes && !s.bytes(n.Content[i+1], path+key.Value):
		case s.check(n.Content[i+1], field.typ, path+key.Value+"."):
			kept = append(kept, key, n.Content[i+1])
		}
		seen[key.Value] = true
	}
	n.Content = kept
}

// bytes puts the number in the place of a size with a unit, "64KiB".
func (s *strict) bytes(n *yaml.Node, path string) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return true
	}
	v, err := ParseSize(n.Value)
	if err != nil {
		s.fail(n, path, "%w", err)
		return false
	}
	n.Tag, n.Style, n.Value = "!!int", 0, strconv.FormatInt(int64(v), 10)
	return true
}

// value decodes a value by itself.
func (s *strict) value(n *yaml.Node, t reflect.Type, path string) bool {
	into := reflect.New(t).Interface()
	if yamltree.CheckWhole(n, into) != nil {
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

// beside returns the errors of err that are not about a path at which there is a problem already.
func (s *strict) beside(err error) (errs []error) {
	if several, are := err.(interface{ Unwrap() []error }); are {
		for _, e := range several.Unwrap() {
			errs = append(errs, s.beside(e)...)
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

// yamlField is a field of a struct. Those tagged `unit:"B"` are whole numbers of bytes, which a text may give with a unit.
type yamlField struct {
	typ   reflect.Type
	bytes bool
}

// fieldsOf lists the YAML fields of a struct.
func fieldsOf(t reflect.Type) (fields map[string]yamlField, names []string) {
	fields = map[string]yamlField{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			inner, more := fieldsOf(f.Type)
			for _, k := range more {
				fields[k] = inner[k]
			}
			names = append(names, more...)
			continue
		}
		if name != "" && name != "-" {
			fields[name] = yamlField{f.Type, f.Tag.Get("unit") == "B"}
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
