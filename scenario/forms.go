package scenario

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

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

func (s *RankSet) decode(d *decoder, n *yaml.Node, path string) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	s.terms = []rankRange{}
	for _, item := range items {
		if text, ok := d.scalar(item, path); ok {
			r, err := parseRanks(text)
			if err != nil {
				d.fail(item, path, "%w", err)
				continue
			}
			s.terms = append(s.terms, r)
		}
	}
}

// contentForms is what a Content can look like, for messages.
const contentForms = "zero, pattern, {hex: ...}, {file: ...}, {values: {...}} or a list of typed values"

// contentFields are the mapping forms of a Content.
type contentForm struct {
	_      oneOf  `help:"Bytes of a form."`
	Hex    Hex    `yaml:"hex" help:"Bytes in hexadecimal; spaces do not count."`
	File   string `yaml:"file" help:"The bytes of a file, relative to the scenario."`
	Values Values `yaml:"values" help:"Values of the fields of a built-in library's state, by name; the others are zero."`
}

func (c *Content) decode(d *decoder, n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.SequenceNode:
		c.kind = contentFields
		d.sequence(n, reflect.ValueOf(&c.fields).Elem(), path)
	case yaml.MappingNode:
		var f contentForm
		d.structure(n, reflect.ValueOf(&f).Elem(), path)
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
			d.fail(n, path, "%q, expected %s", n.Value, contentForms)
		}
	}
}

// Values are numbers by name, in the order in which they were written.
type Values []NamedValue

// NamedValue is a number with a name.
type NamedValue struct {
	Name  string
	Value Expr
}

func (v *Values) decode(d *decoder, n *yaml.Node, path string) {
	*v = Values{}
	d.mapping(n, path, func(key, value *yaml.Node, at string) {
		x := NamedValue{Name: key.Value}
		d.value(value, reflect.ValueOf(&x.Value).Elem(), at)
		*v = append(*v, x)
	})
}

// Settings are values of a profile to replace, in the order in which they were written.
type Settings []Setting

// Setting is one value of a profile.
type Setting struct {
	Path  string // in the profile, such as hpu.cores
	Value string // YAML
	where string // path in the scenario
}

func (s *Settings) decode(d *decoder, n *yaml.Node, path string) { s.add(d, n, "", path) }

func (s *Settings) add(d *decoder, n *yaml.Node, prefix, path string) {
	d.mapping(n, path, func(key, value *yaml.Node, at string) {
		d.lines[at] = value.Line
		switch value.Kind {
		case yaml.MappingNode:
			s.add(d, value, prefix+key.Value+".", at)
		case yaml.ScalarNode:
			*s = append(*s, Setting{Path: prefix + key.Value, Value: value.Value, where: at})
		default:
			d.fail(value, at, "%s, expected a value", kindOf(value))
		}
	})
}

// EventSet is a choice of types of full events. The zero value is none.
type EventSet struct{ chosen [64]bool }

// IsSet reports whether any type is chosen.
func (s *EventSet) IsSet() bool { return s.chosen != [64]bool{} }

func (s *EventSet) decode(d *decoder, n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode && n.Value == "all" {
		for i := range portals.EventNames {
			s.chosen[i] = true
		}
		return
	}
	var list []EventName
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "%s, expected all, or a list of %s", kindOf(n), strings.Join(EventName("").names(), ", "))
		return
	}
	d.sequence(n, reflect.ValueOf(&list).Elem(), path)
	for _, name := range list {
		s.chosen[indexOf(name)] = true
	}
}
