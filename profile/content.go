package profile

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Origin says where a profile comes from.
type Origin struct {
	Name      string   // as it was asked for: of an embedded profile or of a file
	Embedded  bool     // it is one of [Names]
	Overrides []string // "path=value", in the order in which they were applied
}

// Pristine reports whether the profile is an embedded one without overrides.
func (o *Origin) Pristine() bool { return o.Embedded && len(o.Overrides) == 0 }

// Content is the whole profile, overrides and cost table included, as a JSON
// object without white space: fields in the order of the profile's type, so
// that equal profiles have equal bytes. [Parse] makes the same profile of it.
func (p *Profile) Content() ([]byte, error) {
	var n yaml.Node
	if err := n.Encode(p); err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	out, err := compact(&n)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return out, nil
}

// YAML is the whole profile as a file could say it, without a base. Load makes
// the same profile of it.
func (p *Profile) YAML() ([]byte, error) {
	out, err := yaml.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return out, nil
}

// Canonical gives a content that another program has laid out the bytes that
// [Profile.Content] wrote: without white space, and with every character that
// needs no escape as itself. The order of the fields and the digits of numbers
// stay.
func Canonical(content []byte) ([]byte, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(content, &n); err != nil {
		return nil, err
	}
	if len(n.Content) != 1 {
		return nil, errors.New("no content")
	}
	return compact(n.Content[0])
}

func compact(n *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	if err := strictyaml.WriteJSON(&out, n); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
