package profile

import (
	"bytes"
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Origin is the source of a profile and its overrides.
type Origin struct {
	Name      string   // requested name, of an embedded profile or a file
	Embedded  bool     // it is one of [Names]
	Overrides []string // "path=value", in the order of application
}

// Pristine reports whether the profile is an embedded one without overrides.
func (o *Origin) Pristine() bool { return o.Embedded && len(o.Overrides) == 0 }

// Content returns the whole profile, with overrides and cost table, as a JSON
// object without white space. Fields are in the order of the profile's type, so
// that equal profiles have equal bytes. [Parse] reads it back.
func (p *Profile) Content() ([]byte, error) {
	var out bytes.Buffer
	if err := writeContent(&out, reflect.ValueOf(p)); err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return out.Bytes(), nil
}

// writeContent writes a value with the fields that its YAML has. Every result
// records a profile, and the tree of the whole YAML takes ten times as long: only
// rare kinds go through one.
func writeContent(out *bytes.Buffer, v reflect.Value) error {
	switch is := v.Interface().(type) {
	case yaml.Marshaler:
		return writeTree(out, v)
	case encoding.TextMarshaler:
		text, err := is.MarshalText()
		return errors.Join(err, writeText(out, string(text)))
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return writeContent(out, v.Elem())
		}
	case reflect.Struct:
		out.WriteByte('{')
		err := writeFields(out, v)
		out.WriteByte('}')
		return err
	case reflect.Slice:
		out.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeContent(out, v.Index(i)); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	case reflect.String:
		return writeText(out, v.String())
	case reflect.Bool:
		out.Write(strconv.AppendBool(out.AvailableBuffer(), v.Bool()))
		return nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		out.Write(strconv.AppendInt(out.AvailableBuffer(), v.Int(), 10))
		return nil
	}
	return writeTree(out, v)
}

// writeFields writes the fields of a struct, of which out has the brace.
func writeFields(out *bytes.Buffer, v reflect.Value) error {
	for i := range v.NumField() {
		is, field := v.Type().Field(i), v.Field(i)
		name, options, _ := strings.Cut(is.Tag.Get("yaml"), ",")
		switch {
		case !is.IsExported() || name == "-" || strings.Contains(options, "omitempty") && unset(field):
			continue
		case strings.Contains(options, "inline"):
			if err := writeFields(out, field); err != nil {
				return err
			}
			continue
		}
		if out.Bytes()[out.Len()-1] != '{' {
			out.WriteByte(',')
		}
		if err := writeText(out, cmp.Or(name, strings.ToLower(is.Name))); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := writeContent(out, field); err != nil {
			return err
		}
	}
	return nil
}

// unset reports whether YAML leaves out a field that may be left out.
func unset(v reflect.Value) bool {
	switch is := v.Interface().(type) {
	case yaml.IsZeroer:
		return is.IsZero()
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

func writeText(out *bytes.Buffer, text string) error {
	return strictyaml.WriteJSON(out, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text})
}

func writeTree(out *bytes.Buffer, v reflect.Value) error {
	var n yaml.Node
	if err := n.Encode(v.Interface()); err != nil {
		return err
	}
	return strictyaml.WriteJSON(out, &n)
}

// YAML returns the whole profile as the text of a file without a base. Load
// reads it back.
func (p *Profile) YAML() ([]byte, error) {
	out, err := yaml.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return out, nil
}

// Canonical restores the bytes of [Profile.Content] from a content that another
// program has reformatted: no white space, and no needless escapes. It keeps
// the order of the fields and the digits of numbers.
func Canonical(content []byte) ([]byte, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(content, &n); err != nil {
		return nil, err
	}
	if len(n.Content) != 1 {
		return nil, errors.New("no content")
	}
	return compact(n.Content[0])
}

func compact(n *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	if err := strictyaml.WriteJSON(&out, n); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
