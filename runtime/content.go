package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Origin says where a profile comes from.
type Origin struct {
	Name      string   // as it was asked for: of an embedded profile or of a file
	Embedded  bool     // it is one of ProfileNames
	Overrides []string // "path=value", in the order in which they were applied
}

// Pristine reports whether the profile is an embedded one without overrides.
func (o *Origin) Pristine() bool { return o.Embedded && len(o.Overrides) == 0 }

// Content is the whole profile, overrides and cost table included, as a JSON object without white space: fields in the order of the
// profile's type, so that equal profiles have equal bytes. ParseProfile makes the same profile of it.
func (p *Profile) Content() ([]byte, error) {
	var n yaml.Node
	if err := n.Encode(p); err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	var out bytes.Buffer
	if err := writeTree(&out, &n); err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return out.Bytes(), nil
}

// ParseProfile reads a whole profile, without a base, from YAML or from what Profile.Content returns, and applies overrides as
// LoadProfile does. The name is for messages.
func ParseProfile(name string, text []byte, overrides ...string) (*Profile, error) {
	tree, err := parseTree(name, text)
	if err != nil {
		return nil, fmt.Errorf("profile %w", err)
	}
	return profileOf(name, tree, overrides)
}

// writeTree writes YAML as JSON: mappings keep their order.
func writeTree(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeScalar(out, n.Content[i]); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := writeTree(out, n.Content[i+1]); err != nil {
				return err
			}
		}
		out.WriteByte('}')
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, v := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeTree(out, v); err != nil {
				return err
			}
		}
		out.WriteByte(']')
	default:
		return writeScalar(out, n)
	}
	return nil
}

func writeScalar(out *bytes.Buffer, n *yaml.Node) error {
	var v any = n.Value
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!null":
		if err := n.Decode(&v); err != nil {
			return err
		}
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("%q: %w", n.Value, err)
	}
	out.Truncate(out.Len() - 1)
	return nil
}
