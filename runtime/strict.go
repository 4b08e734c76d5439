package runtime

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/yamltree"
)

// decodeTree decodes a mapping into the struct that into points at. An error names the place, as "name:line: path", and what was expected
// there.
func decodeTree(name string, tree *yaml.Node, into any) error {
	t := reflect.TypeOf(into).Elem()
	if err := checkFields(name, tree, t, ""); err != nil {
		return err
	}
	if err := yamltree.CheckWhole(tree, into); err != nil {
		var wrong *yamltree.Error
		if errors.As(err, &wrong) {
			return fmt.Errorf("%s:%d: %w", name, wrong.Line, wrong.Err)
		}
		return err
	}
	err := tree.Decode(into)
	if err == nil {
		return nil
	}
	if place := blame(name, tree, t, ""); place != nil {
		return place
	}
	return fmt.Errorf("%s: %w", name, err)
}

// checkFields reports the first key that is no field of t, and keys that stand twice.
func checkFields(name string, n *yaml.Node, t reflect.Type, path string) error {
	if n.Kind == yaml.MappingNode && t.Kind() == reflect.Map {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := checkFields(name, n.Content[i+1], t.Elem(), path+n.Content[i].Value+"."); err != nil {
				return err
			}
		}
		return nil
	}
	if n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice {
		for i, item := range n.Content {
			if err := checkFields(name, item, t.Elem(), itemPath(path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if n.Kind != yaml.MappingNode || t.Kind() != reflect.Struct {
		return nil
	}
	if _, own := reflect.New(t).Interface().(yaml.Unmarshaler); own {
		return nil
	}
	fields, names := fieldsOf(t)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		field, known := fields[key.Value]
		switch {
		case !known:
			return fmt.Errorf("%s:%d: %s: unknown field, expected one of %s", name, key.Line, path+key.Value, strings.Join(names, ", "))
		case seen[key.Value]:
			return fmt.Errorf("%s:%d: %s: given twice", name, key.Line, path+key.Value)
		}
		seen[key.Value] = true
		if err := checkFields(name, n.Content[i+1], field, path+key.Value+"."); err != nil {
			return err
		}
	}
	return nil
}

// itemPath is the path to the fields of an item of a list.
func itemPath(path string, i int) string {
	return fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i)
}

// fieldsOf lists the YAML fields of a struct.
func fieldsOf(t reflect.Type) (fields map[string]reflect.Type, names []string) {
	fields = map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			inner, more := fieldsOf(f.Type)
			for _, k := range more {
				fields[k] = inner[k]
			}
			names = append(names, more...)
			continue
		}
		if name != "" && name != "-" {
			fields[name] = f.Type
			names = append(names, name)
		}
	}
	return fields, names
}

// blame finds the value that cannot be decoded, by decoding every value alone.
func blame(name string, n *yaml.Node, t reflect.Type, path string) error {
	if n.Kind == yaml.MappingNode && t.Kind() == reflect.Map {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := blame(name, n.Content[i+1], t.Elem(), path+n.Content[i].Value+"."); err != nil {
				return err
			}
		}
		return nil
	}
	if n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct {
		if _, own := reflect.New(t).Interface().(yaml.Unmarshaler); !own {
			fields, _ := fieldsOf(t)
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i].Value
				if err := blame(name, n.Content[i+1], fields[key], path+key+"."); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		for i, item := range n.Content {
			if err := blame(name, item, t.Elem(), itemPath(path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	err := n.Decode(reflect.New(t).Interface())
	if err == nil {
		return nil
	}
	var types *yaml.TypeError
	if errors.As(err, &types) {
		err = fmt.Errorf("%s, expected %s", shown(n), wanted(t))
	}
	return fmt.Errorf("%s:%d: %s: %w", name, n.Line, strings.TrimSuffix(path, "."), err)
}

// shown is a value as it stands in the text.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields with values"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}

// wanted says what a value of a type looks like.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "fields with values"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	}
	return "a whole number"
}
