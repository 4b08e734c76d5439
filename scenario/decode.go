package scenario

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/yamltree"
)

// FieldError is something wrong with a value of a scenario.
type FieldError struct {
	File string // "" if the scenario is of no file
	Line int    // 0: unknown
	Path string // such as programs[0].steps[2].put.to
	Err  error
}

// Error is file:line: path: what is wrong.
func (e *FieldError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
		if e.Line > 0 {
			fmt.Fprintf(&b, "%d:", e.Line)
		}
		b.WriteByte(' ')
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	return b.String() + e.Err.Error()
}

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

// decoder turns YAML nodes into values of Spec. It knows every field by its type, notes the line of every path and collects
// errors; a node that is wrong leaves its value as it was.
type decoder struct {
	file  string
	lines map[string]int
	errs  []*FieldError
}

// nodeDecoder is a type with a form of its own.
type nodeDecoder interface {
	decode(d *decoder, n *yaml.Node, path string)
}

// Parse reads a scenario. The file's name is for messages. All errors, of type *FieldError, are joined.
func Parse(file string, data []byte) (*Spec, error) {
	s, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	return s, s.unread()
}

// parse returns what could be read, and notes what could not; an error is one of the text as a whole.
func parse(file string, data []byte) (*Spec, error) {
	root, err := yamltree.Parse(data)
	if err != nil {
		return nil, textError(file, err)
	}
	s := &Spec{file: file, text: data, lines: make(map[string]int)}
	d := &decoder{file: file, lines: s.lines}
	d.value(root, reflect.ValueOf(s).Elem(), "")
	s.wrong = d.errs
	return s, nil
}

// unread are the errors of what could not be read.
func (s *Spec) unread() error {
	var errs []error
	for _, e := range s.wrong {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// damaged reports whether something at a path, below it or above it could not be read: what else is said of it would only follow.
func (s *Spec) damaged(path string) bool {
	return slices.ContainsFunc(s.wrong, func(e *FieldError) bool { return below(path, e.Path) || below(e.Path, path) })
}

// below reports whether a path is another or leads on from it.
func below(path, other string) bool {
	rest, is := strings.CutPrefix(path, other)
	return is && (rest == "" || other == "" || rest[0] == '.' || rest[0] == '[')
}

// textError is an error of the YAML reader as one of the file.
func textError(file string, err error) error {
	e := &FieldError{File: file, Err: err}
	var wrong *yamltree.Error
	if errors.As(err, &wrong) {
		e.Line, e.Err = wrong.Line, wrong.Err
	}
	if errors.Is(err, yamltree.ErrEmpty) {
		e.Err = errors.New("the file is empty, expected a scenario")
	}
	return e
}

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.errs = append(d.errs, &FieldError{File: d.file, Line: n.Line, Path: path, Err: fmt.Errorf(format, args...)})
}

// value sets v from a node.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	d.lines[path] = n.Line
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		d.fail(n, path, "no value")
		return
	}
	switch x := v.Addr().Interface().(type) {
	case nodeDecoder:
		x.decode(d, n, path)
		return
	case encoding.TextUnmarshaler:
		if text, ok := d.scalar(n, path); ok {
			if err := x.UnmarshalText([]byte(text)); err != nil {
				d.fail(n, path, "%w", err)
			}
		}
		return
	case named:
		d.name(n, v, x.names(), path)
		return
	}
	d.plain(n, v, path)
}

// plain sets a value of a kind that Go has.
func (d *decoder) plain(n *yaml.Node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	case reflect.String:
		if text, ok := d.scalar(n, path); ok {
			v.SetString(text)
		}
	case reflect.Int:
		d.number(n, path, func(text string) error {
			i, err := strconv.ParseInt(text, 0, 32)
			v.SetInt(i)
			return err
		})
	case reflect.Uint64:
		d.number(n, path, func(text string) error {
			u, err := strconv.ParseUint(text, 0, 64)
			v.SetUint(u)
			return err
		})
	default:
		panic("scenario: no way to read a " + v.Type().String())
	}
}

func (d *decoder) number(n *yaml.Node, path string, set func(string) error) {
	if text, ok := d.scalar(n, path); ok && set(text) != nil {
		d.fail(n, path, "%q, expected a whole number", text)
	}
}

func (d *decoder) scalar(n *yaml.Node, path string) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "%s, expected a single value", kindOf(n))
		return "", false
	}
	return n.Value, true
}

func (d *decoder) name(n *yaml.Node, v reflect.Value, names []string, path string) {
	text, ok := d.scalar(n, path)
	if !ok {
		return
	}
	if !slices.Contains(names, text) {
		d.fail(n, path, "%q, expected one of %s", text, strings.Join(names, ", "))
		return
	}
	v.SetString(text)
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "%s, expected a list", kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		d.value(c, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	unknown := false
	given := d.mapping(n, path, func(key, value *yaml.Node, at string) {
		f := fields.find(key.Value)
		if f == nil {
			d.fail(key, at, "unknown field, expected one of %s", strings.Join(fields.names(), ", "))
			unknown = true
			return
		}
		d.value(value, v.FieldByIndex(f.index), at)
	})
	if given == nil {
		return
	}
	chosen := 0
	for _, f := range fields.list {
		if f.required && !slices.Contains(given, f.name) {
			d.fail(n, path, "%s is missing", f.name)
		}
		if !f.beside && slices.Contains(given, f.name) {
			chosen++
		}
	}
	if fields.oneOf && chosen != 1 && (chosen > 0 || !unknown) {
		d.fail(n, path, "%d of the fields %s, expected exactly one", chosen, strings.Join(fields.names(), ", "))
	}
}

// mapping calls entry for every key and returns the keys, nil if the node is no mapping.
func (d *decoder) mapping(n *yaml.Node, path string, entry func(key, value *yaml.Node, path string)) []string {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "%s, expected fields with values", kindOf(n))
		return nil
	}
	given := []string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := key.Value
		if path != "" {
			at = path + "." + key.Value
		}
		switch {
		case key.Kind != yaml.ScalarNode:
			d.fail(key, path, "%s as a key, expected a name", kindOf(key))
		case slices.Contains(given, key.Value):
			d.fail(key, at, "given twice")
		default:
			given = append(given, key.Value)
			entry(key, value, at)
		}
	}
	return given
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}

// fieldInfo is a field of a struct of Spec.
type fieldInfo struct {
	name, help       string
	required, beside bool
	index            []int
	typ              reflect.Type
}

// fieldList is the fields of a struct, those of inlined structs among them.
type fieldList struct {
	list  []fieldInfo
	oneOf bool // exactly one is given, besides those marked so
	help  string
}

func fieldsOf(t reflect.Type) (all fieldList) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Type == reflect.TypeFor[oneOf]():
			all.oneOf, all.help = true, f.Tag.Get("help")
		case option == "inline":
			for _, inner := range fieldsOf(f.Type).list {
				inner.index = append([]int{i}, inner.index...)
				all.list = append(all.list, inner)
			}
		case name != "":
			all.list = append(all.list, fieldInfo{
				name: name, help: f.Tag.Get("help"), index: []int{i}, typ: f.Type,
				required: f.Tag.Get("required") != "", beside: f.Tag.Get("beside") != "",
			})
		}
	}
	return all
}

func (l *fieldList) find(name string) *fieldInfo {
	for i := range l.list {
		if l.list[i].name == name {
			return &l.list[i]
		}
	}
	return nil
}

func (l *fieldList) names() []string {
	names := make([]string, len(l.list))
	for i := range l.list {
		names[i] = l.list[i].name
	}
	return names
}
