package runtime

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseTree reads YAML whose root is a mapping.
func parseTree(name string, data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: expected a mapping at the top", name)
	}
	return doc.Content[0], nil
}

// child returns the value of key in mapping m, nil if it has none.
func child(m *yaml.Node, key string) *yaml.Node {
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

// applyOverride sets "a.b.c=value" in tree; the path must be that of a field, so that a misspelt one is found.
func applyOverride(tree *yaml.Node, override string) error {
	path, value, ok := strings.Cut(override, "=")
	if !ok {
		return errors.New("expected path=value, such as hpu.cores=8")
	}
	n, t := tree, reflect.TypeFor[Profile]()
	for part := range strings.SplitSeq(strings.TrimSpace(path), ".") {
		if n.Kind != yaml.MappingNode || t.Kind() != reflect.Struct {
			return fmt.Errorf("%s: %s is below a single value", path, part)
		}
		fields, names := fieldsOf(t)
		field, known := fields[part]
		if !known {
			return fmt.Errorf("%s: no field %s, expected one of %s", path, part, strings.Join(names, ", "))
		}
		next := child(n, part)
		if next == nil { // a field that the file leaves at its zero value
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: part}, next)
		}
		n, t = next, field
	}
	var v yaml.Node
	if err := yaml.Unmarshal([]byte(value), &v); err != nil || len(v.Content) != 1 {
		return fmt.Errorf("%s: %q is no YAML value", path, value)
	}
	*n = *v.Content[0]
	return nil
}
