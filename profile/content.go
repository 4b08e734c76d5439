package profile

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Origin is the source of a profile and its overrides.
type Origin struct {
	Name      string   // requested name, of an embedded profile or a file
	Embedded  bool     // it is one of [Names]
	Overrides []string // "path=value", in the order of application
}

// Pristine reports whether the profile is an embedded one without overrides.
func (o *Origin) Pristine() bool { return o.Embedded && len(o.Overrides) == 0 }

// Content returns the whole profile, with overrides and cost table, as a JSON
// object without white space. Fields are in the order of the profile's type, so
// that equal profiles have equal bytes. [Parse] reads it back.
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

// YAML returns the whole profile as the text of a file without a base. Load
// reads it back.
func (p *Profile) YAML() ([]byte, error) {
	out, err := yaml.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return out, nil
}

// Canonical restores the bytes of [Profile.Content] from a content that another
// program has reformatted: no white space, and no needless escapes. It keeps
// the order of the fields and the digits of numbers.
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
