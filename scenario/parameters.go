package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Parameters are values with names, which stand for them in the rest of the scenario as $name: what people change from run to run.
type Parameters []Parameter

// Parameter is one of them.
type Parameter struct {
	Name  string
	Value string // as it was written; of the last run's options if they say another one
}

// ReadYAML reads names and single values.
func (p *Parameters) ReadYAML(r *strictyaml.Reader, n *yaml.Node, path string) {
	r.Mapping(n, path, func(key, value *yaml.Node, at string) {
		r.Note(value, at)
		text, ok := r.Scalar(value, at)
		switch {
		case ok && parameterName(key.Value) != key.Value:
			r.Fail(key, at, "%q, expected a name of a-z, 0-9 and _, a letter first", key.Value)
		case ok:
			*p = append(*p, Parameter{key.Value, text})
		}
	})
}

// parameterName is the name that a text begins with, "" if it begins with none.
func parameterName(text string) string {
	for i, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return text[:i]
		}
	}
	return text
}

// names are those of the parameters.
func (p Parameters) names() (list []string) {
	for _, one := range p {
		list = append(list, one.Name)
	}
	return list
}

// find returns the parameter of a name, nil if there is none.
func (p Parameters) find(name string) *Parameter {
	if i := slices.IndexFunc(p, func(one Parameter) bool { return one.Name == name }); i >= 0 {
		return &p[i]
	}
	return nil
}

// missing says that there is no parameter of a name.
func (p Parameters) missing(name string) error {
	if len(p) == 0 {
		return fmt.Errorf("no parameter %q, the scenario has no parameters", name)
	}
	return fmt.Errorf("no parameter %q, expected one of %s%s", name, strings.Join(p.names(), ", "), fields.DidYouMean(name, p.names()))
}

// parametersOf are those of a scenario, with the values that a caller gives them. What is wrong with those of the scenario is not said here.
func parametersOf(root *yaml.Node, values map[string]string) (p Parameters, err error) {
	if n := strictyaml.Child(root, "parameters"); n != nil {
		p.ReadYAML(&strictyaml.Reader{}, n, "")
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if one := p.find(name); one != nil {
			one.Value = values[name]
		} else {
			errs = append(errs, p.missing(name))
		}
	}
	return p, errors.Join(errs...)
}

// insert puts values in the place of names in every single value of a tree.
func (p Parameters) insert(r *strictyaml.Reader, n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			if at != "parameters" {
				p.insert(r, n.Content[i+1], at)
			}
		}
	case yaml.SequenceNode:
		for i, one := range n.Content {
			p.insert(r, one, fmt.Sprintf("%s[%d]", path, i))
		}
	case yaml.ScalarNode:
		if !strings.Contains(n.Value, "$") {
			return
		}
		text, err := p.expand(n.Value)
		if err != nil {
			r.Fail(n, path, "%w", err)
			return
		}
		n.Value = text
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			n.Tag = "" // it may be a number now
		}
	}
}

// expand is a text with values in the place of names; $$ is a $.
func (p Parameters) expand(text string) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if rest, twice := strings.CutPrefix(after, "$"); twice {
			b.WriteByte('$')
			text = rest
			continue
		}
		name := parameterName(after)
		if name == "" {
			return "", fmt.Errorf("%q: expected the name of a parameter after $; $$ is a $", text)
		}
		one := p.find(name)
		if one == nil {
			return "", p.missing(name)
		}
		b.WriteString(one.Value)
		text = after[len(name):]
	}
}
