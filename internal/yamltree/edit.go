package yamltree

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ParseMapping reads YAML whose root is a mapping.
func ParseMapping(name string, data []byte) (*yaml.Node, error) {
	root, err := Parse(data)
	var wrong *Error
	switch {
	case errors.As(err, &wrong) && wrong.Line > 0:
		return nil, fmt.Errorf("%s:%d: %w", name, wrong.Line, wrong.Err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case root.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%s:%d: expected fields with values at the top", name, root.Line)
	}
	return root, nil
}

// parseValue reads the value of an override.
func parseValue(text string) (*yaml.Node, error) {
	v, err := Parse([]byte(text))
	var wrong *Error
	switch {
	case errors.Is(err, ErrEmpty), err == nil && v.Tag == "!!null":
		return nil, errors.New("no value, expected one behind =")
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("%q: %w", text, wrong.Err)
	}
	return v, err
}

// Child returns the value of key in mapping m, nil if it has none or m is nil.
func Child(m *yaml.Node, key string) *yaml.Node {
	if m == nil {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// Remove takes key out of mapping m and returns its value, nil if it has none.
func Remove(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			v := m.Content[i+1]
			m.Content = append(m.Content[:i], m.Content[i+2:]...)
			return v
		}
	}
	return nil
}

// Clone copies a tree that has no aliases.
func Clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, v := range n.Content {
		c.Content[i] = Clone(v)
	}
	return &c
}

// Merge lays over on base: mappings key by key, everything else replaced.
func Merge(base, over *yaml.Node) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, v := over.Content[i], over.Content[i+1]
		old := Child(base, key.Value)
		switch {
		case old == nil:
			base.Content = append(base.Content, key, v)
		case old.Kind == yaml.MappingNode && v.Kind == yaml.MappingNode:
			Merge(old, v)
		default:
			*old = *v
		}
	}
}

// Override sets "a.b.c=value" in a tree of type t; the path must be that of a field, so that a misspelt one is found.
func Override(root *yaml.Node, t reflect.Type, override string) error {
	path, value, ok := strings.Cut(override, "=")
	if !ok {
		return errors.New("expected path=value, such as hpu.cores=8")
	}
	if err := checkPath(t, path); err != nil {
		return err
	}
	v, err := parseValue(value)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	n := root
	for part := range strings.SplitSeq(strings.TrimSpace(path), ".") {
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("%s: %s is below a single value", path, part)
		}
		next := Child(n, part)
		if next == nil { // a field that the file leaves at its zero value
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: part}, next)
		}
		n = next
	}
	*n = *v
	return nil
}

// checkPath looks for the field of a type that a path names.
func checkPath(t reflect.Type, path string) error {
	for part := range strings.SplitSeq(strings.TrimSpace(path), ".") {
		if t.Kind() != reflect.Struct {
			return fmt.Errorf("%s: %s is below a single value", path, part)
		}
		fields, names := Fields(t)
		field, known := fields[part]
		switch {
		case path == "":
			return fmt.Errorf("no field before =, expected one of %s", strings.Join(names, ", "))
		case !known:
			return fmt.Errorf("%s: no field %q, expected one of %s", path, part, strings.Join(names, ", "))
		}
		t = field.Type
	}
	return nil
}
