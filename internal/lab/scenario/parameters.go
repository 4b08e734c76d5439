package scenario

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/fields"
	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Parameters are named values for everything that people change from run to
// run. The rest of the scenario uses them as $name.
type Parameters []Parameter

// Parameter is a named value.
type Parameter struct {
	Name  string
	Value string // as written, in the scenario or in the options of the run
}

// ReadYAML reads names and single values.
func (p *Parameters) ReadYAML(r *strictyaml.Reader, n *yaml.Node, path string) {
	r.Mapping(n, path, func(key, value *yaml.Node, at string) {
		r.Note(value, at)
		if value.ShortTag() == "!!null" {
			r.Fail(value, at, "no value")
			return
		}
		text, ok := r.Scalar(value, at)
		switch {
		case ok && parameterName(key.Value) != key.Value:
			r.Fail(key, at, "%q, expected a name of a-z, 0-9 and _, a letter first", key.Value)
		case ok:
			*p = append(*p, Parameter{key.Value, text})
		}
	})
}

// parameterName returns the name at the beginning of a text, "" if there is
// none.
func parameterName(text string) string {
	for i, c := range []byte(text) {
		letter := c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return text[:i]
		}
	}
	return text
}

// names returns the names of the parameters.
func (p Parameters) names() (list []string) {
	for _, one := range p {
		list = append(list, one.Name)
	}
	return list
}

// find returns the parameter with a name, nil if there is none.
func (p Parameters) find(name string) *Parameter {
	if i := slices.IndexFunc(p, func(one Parameter) bool { return one.Name == name }); i >= 0 {
		return &p[i]
	}
	return nil
}

// unknownError is a name without a parameter.
type unknownError struct {
	name  string
	there []string
}

// Error lists the existing parameters.
func (e *unknownError) Error() string {
	if len(e.there) == 0 {
		return fmt.Sprintf("no parameter %q, the scenario has no parameters", e.name)
	}
	return fmt.Sprintf("no parameter %q, expected one of %s%s", e.name, strings.Join(e.there, ", "), fields.DidYouMean(e.name, e.there))
}

// missing returns an error: there is no parameter with that name.
func (p Parameters) missing(name string) error { return &unknownError{name, p.names()} }

// block is the parameters in the text of a scenario.
type block struct {
	Parameters
	wrong  strictyaml.Errors // errors of reading it
	unread []string          // names whose values could not be read
	// paths of values that use an unreadable name: their errors follow from it
	missing map[string]bool
	uses    map[string][]string // paths of values, by the parameters in them
}

// blockOf reads the parameters of a scenario.
func blockOf(root *yaml.Node, file string) *block {
	b := &block{missing: make(map[string]bool), uses: make(map[string][]string)}
	n := strictyaml.Child(root, "parameters")
	if n == nil {
		return b
	}
	r := strictyaml.Reader{File: file}
	b.ReadYAML(&r, n, "parameters")
	b.wrong = r.Errors
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if name := n.Content[i].Value; b.find(name) == nil {
				b.unread = append(b.unread, name)
			}
		}
	}
	return b
}

// ParametersIn lists the names of the parameters of a scenario, for completion.
// It returns none if it cannot read the file.
func ParametersIn(file string) []string {
	data, err := input.ReadRegular(file, input.MaxText)
	if err != nil {
		return nil
	}
	root, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil
	}
	return blockOf(root, file).names()
}

// lost reports whether a name may be one of the unreadable ones.
func (b *block) lost(name string) bool {
	return b.wrong != nil && (len(b.Parameters) == 0 || slices.ContainsFunc(b.unread, func(n string) bool { return strings.EqualFold(n, name) }))
}

// give sets parameters to the values of a caller. It returns an error for
// unknown names.
func (b *block) give(values map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if one := b.find(name); one != nil {
			one.Value = values[name]
		} else if !b.lost(name) {
			errs = append(errs, b.Parameters.missing(name))
		}
	}
	return errors.Join(errs...)
}

// insert replaces names by values in every single value of a tree.
func (b *block) insert(r *strictyaml.Reader, n *yaml.Node, path string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			at := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			if at != "parameters" {
				b.insert(r, n.Content[i+1], at)
			}
		}
	case yaml.SequenceNode:
		for i, one := range n.Content {
			b.insert(r, one, fmt.Sprintf("%s[%d]", path, i))
		}
	case yaml.ScalarNode:
		if !strings.Contains(n.Value, "$") {
			return
		}
		for i, c := range n.Value {
			if name := parameterName(n.Value[i+1:]); c == '$' && name != "" {
				b.uses[name] = append(b.uses[name], path)
			}
		}
		text, err := b.expand(n.Value)
		if unknown := (*unknownError)(nil); errors.As(err, &unknown) && b.lost(unknown.name) {
			b.missing[path] = true
		}
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

// sum matches an expression with an operator that no parentheses enclose. A name
// in it stands for text, so $a * 2 with 8 + 8 would be 24. A path or a name with
// a hyphen is none.
var sum = regexp.MustCompile(`^[\w$.()]*[\w$.](( [-+*/%] |[+*%])[\w$.()]+)+$`)

// expand replaces names by values in a text; $$ is a $.
func (p Parameters) expand(text string) (string, error) {
	var b strings.Builder
	whole := text
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
		if sum.MatchString(one.Value) && !strings.HasPrefix(one.Value, "(") && sum.MatchString(whole) {
			return "", fmt.Errorf("%q in %q is part of a sum or product, expected parentheses around it: %s=(%s)", one.Value, whole, name, one.Value)
		}
		b.WriteString(one.Value)
		text = after[len(name):]
	}
}
