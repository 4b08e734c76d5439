package runtime

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/sim"
)

// Difference is a field in which two profiles differ, with its values as a profile or an override writes them.
type Difference struct{ Path, From, To string }

// String prints a difference as "hpu.cores: 4 → 8".
func (d Difference) String() string { return fmt.Sprintf("%s: %s → %s", d.Path, d.From, d.To) }

// Differences lists the fields in which two profiles differ, in the order of the fields of Profile, name and description apart.
func Differences(from, to *Profile) ([]Difference, error) {
	var a, b yaml.Node
	if err := errors.Join(a.Encode(from), b.Encode(to)); err != nil {
		return nil, fmt.Errorf("profiles %s and %s: %w", from.Name, to.Name, err)
	}
	var list []Difference
	differ(&list, "", reflect.TypeFor[Profile](), &a, &b)
	return list, nil
}

// differ adds the differences below a field; a and b are nil where a profile leaves it at its zero value.
func differ(list *[]Difference, path string, t reflect.Type, a, b *yaml.Node) {
	if t.Kind() == reflect.Struct && (a != nil && a.Kind == yaml.MappingNode || b != nil && b.Kind == yaml.MappingNode) {
		fields, names := fieldsOf(t)
		for _, name := range names {
			differ(list, strings.TrimPrefix(path+"."+name, "."), fields[name], child(a, name), child(b, name))
		}
		return
	}
	from, to := valueText(t, a), valueText(t, b)
	if from != to && path != "name" && path != "description" {
		*list = append(*list, Difference{path, from, to})
	}
}

// valueText writes the value of a field on one line.
func valueText(t reflect.Type, n *yaml.Node) string {
	switch {
	case n != nil:
		return n.Value
	case t.Kind() == reflect.Bool:
		return "false"
	case t == reflect.TypeFor[sim.Time]():
		return "0ns"
	}
	return "0"
}
