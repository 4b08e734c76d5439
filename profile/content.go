package profile

import (
	"bytes"
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

// Content is the whole profile, overrides and cost table included, as a JSON object without white space: fields in the order of the
// profile's type, so that equal profiles have equal bytes. [Parse] makes the same profile of it.
func (p *Profile) Content() ([]byte, error) {
	var n yaml.Node
	if err := n.Encode(p); err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	var out bytes.Buffer
	if err := strictyaml.WriteJSON(&out, &n); err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return out.Bytes(), nil
}
