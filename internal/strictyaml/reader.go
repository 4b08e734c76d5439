package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/fields"
)

// Reader turns trees into Go values, field by field, and collects errors. An
// error leaves the value as it was, and so does a field that the tree does not
// have. Therefore reading one tree after the other into the same value lays one
// over the other.
//
// The type of a value decides its form:
//
//   - A type with its own form is a [Form], or an encoding.TextUnmarshaler, or
//     has an UnmarshalYAML.
//   - A text from a fixed list is a [Choice].
//   - Structs have fields with yaml tags; see [FieldsOf]. Unknown fields and
//     fields given twice are errors.
//   - Lists are replaced as a whole. Maps have names as keys.
//   - Whole numbers are decimal, hexadecimal (0x10), octal (0o17) or binary
//     (0b11), or whole with an exponent (2e6): nothing is cut off, and 010 is
//     an error, because some take it for 8.
//   - A null value is an error everywhere.
type Reader struct {
	File string // name of the text in messages
	// ByName has the types for which a text may give a name instead of the
	// fields. The function returns the tree for a name. A value of such a type
	// is replaced as a whole: nothing of its old content is left.
	ByName map[reflect.Type]func(name string) (*yaml.Node, error)
	Lines  map[string]int // line of every value, by path; nil: not needed
	Errors Errors         // errors so far

	lineless bool // the text has no lines
}

// Form is a type that reads itself.
type Form interface {
	ReadYAML(r *Reader, n *yaml.Node, path string)
}

// Choice is a text from a list of names.
type Choice interface {
	Choices() []string
}

// Read sets the struct that into points at from a tree.
func (r *Reader) Read(tree *yaml.Node, into any) { r.value(tree, reflect.ValueOf(into).Elem(), "") }

// Value sets the value at a path, which into points at, for types that are a
// Form.
func (r *Reader) Value(n *yaml.Node, into any, path string) {
	r.value(n, reflect.ValueOf(into).Elem(), path)
}

// Fail notes an error about the value at a path.
func (r *Reader) Fail(n *yaml.Node, path, format string, args ...any) {
	e := &Error{File: r.File, Line: n.Line, Path: path, Err: fmt.Errorf(format, args...)}
	if r.lineless {
		e.Line = 0
	}
	r.Errors = append(r.Errors, e)
}

// Note notes the line of the value at a path.
func (r *Reader) Note(n *yaml.Node, path string) {
	if r.Lines != nil {
		r.Lines[path] = n.Line
	}
}

// Scalar returns the text of a single value, or notes that the value is not
// single.
func (r *Reader) Scalar(n *yaml.Node, path string) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode {
		r.Fail(n, path, "%s, expected a single value", Shown(n))
		return "", false
	}
	return n.Value, true
}

// Mapping calls entry for every key of a mapping and returns the keys. It
// returns nil if the node is not a mapping.
func (r *Reader) Mapping(n *yaml.Node, path string, entry func(key, value *yaml.Node, path string)) []string {
	if n.Kind != yaml.MappingNode {
		r.Fail(n, path, "%s, expected fields with values", Shown(n))
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
			r.Fail(key, path, "%s as a key, expected a name", Shown(key))
		case slices.Contains(given, key.Value):
			r.Fail(key, at, "given twice")
		default:
			given = append(given, key.Value)
			entry(key, value, at)
		}
	}
	return given
}

// Shown returns a value in the form for messages.
func Shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields with values"
	case yaml.SequenceNode:
		return "a list"
	}
	if len(n.Value) > longest {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(n.Value[:longest], ""))
	}
	return fmt.Sprintf("%q", n.Value)
}

// longest is the largest part of a value in messages, bytes: another kind of
// file may be one long value.
const longest = 100

// value sets v from a node.
func (r *Reader) value(n *yaml.Node, v reflect.Value, path string) {
	r.Note(n, path)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		r.Fail(n, path, "no value")
		return
	}
	if find := r.ByName[v.Type()]; find != nil {
		r.named(n, v, path, find)
		return
	}
	switch x := v.Addr().Interface().(type) {
	case Form:
		x.ReadYAML(r, n, path)
	case encoding.TextUnmarshaler:
		if text, ok := r.Scalar(n, path); ok {
			if err := x.UnmarshalText([]byte(text)); err != nil {
				r.Fail(n, path, "%w", err)
			}
		}
	case Choice:
		r.choice(n, v, x.Choices(), path)
	case yaml.Unmarshaler, interface{ UnmarshalYAML(func(any) error) error }:
		if err := n.Decode(x); err != nil {
			r.Fail(n, path, "%w", err)
		}
	default:
		r.plain(n, v, path)
	}
}

// named reads a value by the name in the text; find returns its fields.
func (r *Reader) named(n *yaml.Node, v reflect.Value, path string, find func(name string) (*yaml.Node, error)) {
	if n.Kind == yaml.ScalarNode {
		tree, err := find(n.Value)
		for _, e := range fields.Each(err) {
			r.Fail(n, path, "%w", e)
		}
		if err != nil {
			return
		}
		n = tree
	}
	whole := reflect.New(v.Type()).Elem()
	if r.plain(n, whole, path); n.Kind == yaml.MappingNode {
		v.Set(whole)
	}
}

// plain sets a value of one of Go's own kinds.
func (r *Reader) plain(n *yaml.Node, v reflect.Value, path string) {
	switch kind := v.Kind(); {
	case kind == reflect.Pointer:
		to := reflect.New(v.Type().Elem())
		v.Set(to)
		r.value(n, to.Elem(), path)
	case kind == reflect.Struct:
		r.structure(n, v, path)
	case kind == reflect.Slice:
		r.list(n, v, path)
	case kind == reflect.Map && v.Type().Key().Kind() == reflect.String:
		r.entries(n, v, path)
	case kind == reflect.String:
		if text, ok := r.Scalar(n, path); ok {
			v.SetString(text)
		}
	case v.CanInt() || v.CanUint():
		if text, ok := r.Scalar(n, path); ok {
			if err := setWhole(v, text); err != nil {
				r.Fail(n, path, "%q, %w", text, err)
			}
		}
	case kind == reflect.Bool || v.CanFloat():
		r.library(n, v, path)
	default:
		panic("strictyaml: no way to read a " + v.Type().String())
	}
}

// library sets a value in one of the forms that the YAML library supports for
// it.
func (r *Reader) library(n *yaml.Node, v reflect.Value, path string) {
	text, ok := r.Scalar(n, path)
	if !ok {
		return
	}
	into := reflect.New(v.Type())
	if err := n.Decode(into.Interface()); err != nil {
		r.Fail(n, path, "%q, expected %s", text, map[bool]string{true: "true or false", false: "a number"}[v.Kind() == reflect.Bool])
		return
	}
	if v.CanFloat() && into.Elem().Float() == 0 && !zero(text) {
		r.Fail(n, path, "%q, expected 0 or a number that is not so close to it", text)
		return
	}
	v.Set(into.Elem())
}

func (r *Reader) choice(n *yaml.Node, v reflect.Value, names []string, path string) {
	text, ok := r.Scalar(n, path)
	if !ok {
		return
	}
	if !slices.Contains(names, text) {
		r.Fail(n, path, "%q, expected one of %s%s", text, strings.Join(names, ", "), fields.DidYouMean(text, names))
		return
	}
	v.SetString(text)
}

func (r *Reader) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		r.Fail(n, path, "%s, expected a list", Shown(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		r.value(c, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// entries sets the entries of a map that the text has.
func (r *Reader) entries(n *yaml.Node, v reflect.Value, path string) {
	all := reflect.MakeMap(v.Type())
	for k, x := range v.Seq2() {
		all.SetMapIndex(k, x)
	}
	r.Mapping(n, path, func(key, value *yaml.Node, at string) {
		name := reflect.ValueOf(key.Value).Convert(v.Type().Key())
		x := reflect.New(v.Type().Elem()).Elem()
		if old := all.MapIndex(name); old.IsValid() {
			x.Set(old)
		}
		before := len(r.Errors)
		if r.value(value, x, at); len(r.Errors) == before {
			all.SetMapIndex(name, x)
		}
	})
	v.Set(all)
}

func (r *Reader) structure(n *yaml.Node, v reflect.Value, path string) {
	all := FieldsOf(v.Type())
	unknown := false
	given := r.Mapping(n, path, func(key, value *yaml.Node, at string) {
		f := all.Find(key.Value)
		if f == nil {
			r.Fail(key, at, "unknown field, expected one of %s%s", strings.Join(all.Names(), ", "), fields.DidYouMean(key.Value, all.Names()))
			unknown = true
			return
		}
		r.field(f, value, v.FieldByIndex(f.Index), at)
	})
	if given == nil {
		return
	}
	chosen := 0
	for _, f := range all.List {
		if f.Required && !slices.Contains(given, f.Name) {
			r.Fail(n, path, "%s is missing", f.Name)
		}
		if !f.Beside && slices.Contains(given, f.Name) {
			chosen++
		}
	}
	if all.OneOf && chosen != 1 && (chosen > 0 || !unknown) {
		r.Fail(n, path, "%d of the fields %s, expected exactly one", chosen, strings.Join(all.Names(), ", "))
	}
}

// field sets a field, which may be bytes with a unit.
func (r *Reader) field(f *Field, n *yaml.Node, v reflect.Value, path string) {
	if !f.Bytes || n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		r.value(n, v, path)
		return
	}
	r.Note(n, path)
	if err := setBytes(v, n.Value); err != nil {
		r.Fail(n, path, "%w", err)
	}
}
