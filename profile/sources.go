package profile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Value is a field of a profile, in text form.
type Value struct {
	Path   string // such as "hpu.cores"
	Value  string
	Source string // source of the value, from the profile's text; "": none
}

// Values lists every value of a content, as made by [Profile.Content], with its
// source. Only embedded profiles and their bases have sources; a user's file
// has none. The source of an override is the override.
func Values(content []byte, o Origin) ([]Value, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(content, &n); err != nil {
		return nil, err
	}
	if len(n.Content) != 1 || n.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: the content is no object", o.Name)
	}
	var list []Value
	flatten("", n.Content[0], func(path, value string) { list = append(list, Value{Path: path, Value: value}) })
	said, err := o.sources()
	if err != nil {
		return nil, err
	}
	for i := range list {
		for path := list[i].Path; path != "" && list[i].Source == ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
			list[i].Source = said[path]
		}
		if list[i].Source == "" && !o.Embedded {
			list[i].Source = "file " + o.Name + ", or its base"
		}
	}
	return list, nil
}

// flatten calls do for each value of a mapping that is not a mapping itself.
func flatten(path string, n *yaml.Node, do func(path, value string)) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, v := strings.TrimPrefix(path+"."+n.Content[i].Value, "."), n.Content[i+1]
		switch {
		case v.Kind == yaml.MappingNode && len(v.Content) > 0:
			flatten(at, v, do)
		case v.Kind == yaml.ScalarNode:
			do(at, v.Value)
		default:
			text, err := compact(v)
			if err != nil {
				text = []byte("?") // cannot happen: it was read as YAML
			}
			do(at, string(text))
		}
	}
}

// sources returns the comments of an embedded profile and its bases, by the
// path of the value or the section, and the overrides.
func (o *Origin) sources() (map[string]string, error) {
	said := make(map[string]string)
	if o.Embedded {
		var chain []*yaml.Node
		for name := o.Name; name != ""; {
			text, err := Source(name)
			if err != nil {
				return nil, err
			}
			tree, err := strictyaml.Parse(name, text)
			if err != nil {
				return nil, err
			}
			chain = append(chain, tree)
			base := strictyaml.Child(tree, "base")
			if name = ""; base != nil {
				name = base.Value
			}
		}
		for _, tree := range slices.Backward(chain) {
			comments(said, "", tree)
		}
	}
	for _, override := range o.Overrides {
		path, _, _ := strings.Cut(override, "=")
		said[strings.TrimSpace(path)] = "override"
	}
	return said, nil
}

// comments collects the comments after the values of a mapping. A value that is
// set again loses the source of its base.
func comments(said map[string]string, path string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		text := v.LineComment
		if text == "" {
			text = key.LineComment
		}
		if text == "" && v.Kind == yaml.MappingNode {
			text = said[at] // comment of the section
		}
		said[at] = strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(text, "#"), "\n#", ""))
		if v.Kind == yaml.MappingNode {
			comments(said, at, v)
		}
	}
}
