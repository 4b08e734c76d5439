package scenario

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/portals"
)

// UnmarshalText reads an expression.
func (e *Expr) UnmarshalText(text []byte) error {
	x, err := ParseExpr(string(text))
	if err == nil {
		*e = x
	}
	return err
}

// ReadYAML reads a rank, a range, all, or a list of them.
func (s *RankSet) ReadYAML(r *strictyaml.Reader, n *yaml.Node, path string) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	s.terms = []rankRange{}
	for _, item := range items {
		if text, ok := r.Scalar(item, path); ok {
			ranks, err := parseRanks(text)
			if err != nil {
				r.Fail(item, path, "%w", err)
				continue
			}
			s.terms = append(s.terms, ranks)
		}
	}
}

// contentForms lists the forms of a Content, for messages.
const contentForms = "zero, pattern, {hex: ...}, {file: ...}, {values: {...}} or a list of typed values"

// contentFields are the mapping forms of a Content.
type contentForm struct {
	_      strictyaml.OneOf `help:"Bytes of a form."`
	Hex    Hex              `yaml:"hex" help:"Bytes in hexadecimal; spaces do not count."`
	File   string           `yaml:"file" help:"The bytes of a file, relative to the scenario."`
	Values Values           `yaml:"values" help:"Numbers of the state, by the names that the module gives them (spinsim handler inspect), such as packets or slots[3].seq; the others are as the module says."`
}

// ReadYAML reads one of the forms of bytes.
func (c *Content) ReadYAML(r *strictyaml.Reader, n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.SequenceNode:
		c.kind = contentFields
		r.Value(n, &c.fields, path)
	case yaml.MappingNode:
		var f contentForm
		r.Value(n, &f, path)
		switch {
		case f.Hex != nil:
			c.kind, c.bytes = contentHex, f.Hex
		case f.File != "":
			c.kind, c.file = contentFile, f.File
		default:
			c.kind, c.values = contentValues, f.Values
		}
	default:
		switch n.Value {
		case "zero":
			c.kind = contentZero
		case "pattern":
			c.kind = contentPattern
		default:
			r.Fail(n, path, "%q, expected %s", n.Value, contentForms)
		}
	}
}

// Values are numbers by name, in the order of the file.
type Values []NamedValue

// NamedValue is a number with a name.
type NamedValue struct {
	Name  string
	Value Float
}

// ReadYAML reads numbers by name.
func (v *Values) ReadYAML(r *strictyaml.Reader, n *yaml.Node, path string) {
	*v = Values{}
	r.Mapping(n, path, func(key, value *yaml.Node, at string) {
		x := NamedValue{Name: key.Value}
		r.Value(value, &x.Value, at)
		*v = append(*v, x)
	})
}

// Settings are values that replace values of a profile, in the order of the
// file.
type Settings []Setting

// Setting is one value of a profile.
type Setting struct {
	Path  string // in the profile, such as hpu.cores
	Value string // YAML
	where string // path in the scenario
}

// ReadYAML reads values by path, or in the nesting of the profile.
func (s *Settings) ReadYAML(r *strictyaml.Reader, n *yaml.Node, path string) { s.add(r, n, "", path) }

func (s *Settings) add(r *strictyaml.Reader, n *yaml.Node, prefix, path string) {
	r.Mapping(n, path, func(key, value *yaml.Node, at string) {
		r.Note(value, at)
		switch value.Kind {
		case yaml.MappingNode:
			s.add(r, value, prefix+key.Value+".", at)
		case yaml.ScalarNode:
			*s = append(*s, Setting{Path: prefix + key.Value, Value: value.Value, where: at})
		default: // a list, such as fabric.dims
			var text bytes.Buffer
			if err := strictyaml.WriteJSON(&text, value); err != nil {
				r.Fail(value, at, "%w", err)
				return
			}
			*s = append(*s, Setting{Path: prefix + key.Value, Value: text.String(), where: at})
		}
	})
}

// EventSet is a set of types of full events. The zero value is the empty set.
type EventSet struct{ chosen [64]bool }

// IsSet reports whether any type is chosen.
func (s *EventSet) IsSet() bool { return s.chosen != [64]bool{} }

// ReadYAML reads all, or a list of types.
func (s *EventSet) ReadYAML(r *strictyaml.Reader, n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode && n.Value == "all" {
		for i := range portals.EventNames {
			s.chosen[i] = true
		}
		return
	}
	var list []EventName
	if n.Kind != yaml.SequenceNode {
		r.Fail(n, path, "%s, expected all, or a list of %s", strictyaml.Shown(n), strings.Join(EventName("").Choices(), ", "))
		return
	}
	r.Value(n, &list, path)
	for _, name := range list {
		s.chosen[indexOf(name)] = true
	}
}
