package runtime

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/yamltree"
)

// parseTree reads YAML whose root is a mapping.
func parseTree(name string, data []byte) (*yaml.Node, error) {
	root, err := yamltree.Parse(data)
	var wrong *yamltree.Error
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
	v, err := yamltree.Parse([]byte(text))
	var wrong *yamltree.Error
	switch {
	case errors.Is(err, yamltree.ErrEmpty), err == nil && v.Tag == "!!null":
		return nil, errors.New("no value, expected one behind =")
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("%q: %w", text, wrong.Err)
	}
	return v, err
}

// child returns the value of key in mapping m, nil if it has none or m is nil.
func child(m *yaml.Node, key string) *yaml.Node {
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

func removeKey(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			v := m.Content[i+1]
			m.Content = append(m.Content[:i], m.Content[i+2:]...)
			return v
		}
	}
	return nil
}

// cloneTree copies a tree that has no aliases.
func cloneTree(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, v := range n.Content {
		c.Content[i] = cloneTree(v)
	}
	return &c
}

// mergeTree lays over on base: mappings key by key, everything else replaced.
func mergeTree(base, over *yaml.Node) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, v := over.Content[i], over.Content[i+1]
		old := child(base, key.Value)
		switch {
		case old == nil:
			base.Content = append(base.Content, key, v)
		case old.Kind == yaml.MappingNode && v.Kind == yaml.MappingNode:
			mergeTree(old, v)
		default:
			*old = *v
		}
	}
}

// applyOverride sets "a.b.c=value" in a tree; the path must be that of a field, so that a misspelt one is found.
func applyOverride(root *yaml.Node, override string) error {
	path, value, ok := strings.Cut(override, "=")
	if !ok {
		return errors.New("expected path=value, such as hpu.cores=8")
	}
	if err := checkPath(path); err != nil {
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
		next := child(n, part)
		if next == nil { // a field that the file leaves at its zero value
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: part}, next)
		}
		n = next
	}
	*n = *v
	return nil
}

// checkPath looks for the field of a profile that a path names.
func checkPath(path string) error {
	t := reflect.TypeFor[Profile]()
	for part := range strings.SplitSeq(strings.TrimSpace(path), ".") {
		if t.Kind() != reflect.Struct {
			return fmt.Errorf("%s: %s is below a single value", path, part)
		}
		fields, names := fieldsOf(t)
		field, known := fields[part]
		switch {
		case path == "":
			return fmt.Errorf("no field before =, expected one of %s", strings.Join(names, ", "))
		case !known:
			return fmt.Errorf("%s: no field %q, expected one of %s", path, part, strings.Join(names, ", "))
		}
		t = field.typ
	}
	return nil
}
