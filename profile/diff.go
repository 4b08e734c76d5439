package profile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
)

// Difference is a field in which two profiles differ, with both values in the
// format of a profile or an override.
type Difference struct{ Path, From, To string }

// String prints a difference as "hpu.cores: 4 → 8". Frequencies have a suitable
// unit. A long table is printed as the hash of its text.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s → %s", d.Path, readable(d.From), readable(d.To))
}

// Longest printed values in bytes, of a table and of a list. Lists, such as the
// times in which links are down, may be longer.
const (
	longest     = 40
	longestList = 240
)

// readable formats a value for people.
func readable(value string) string {
	if len(value) > longest && value[0] == '{' || len(value) > longestList && value[0] == '[' {
		return fmt.Sprintf("table %.6x", sha256.Sum256([]byte(value)))
	}
	var f sim.Frequency
	if strings.HasSuffix(value, "Hz") && f.UnmarshalText([]byte(value)) == nil {
		return f.String()
	}
	return value
}

// Diff lists the fields in which two profiles differ, in the order of the
// fields of Profile, without name and description.
func Diff(from, to *Profile) ([]Difference, error) {
	var a, b yaml.Node
	if err := errors.Join(a.Encode(from), b.Encode(to)); err != nil {
		return nil, fmt.Errorf("profiles %s and %s: %w", from.Name, to.Name, err)
	}
	var list []Difference
	if err := differ(&list, "", reflect.TypeFor[Profile](), &a, &b); err != nil {
		return nil, fmt.Errorf("profiles %s and %s: %w", from.Name, to.Name, err)
	}
	return list, nil
}

// differ adds the differences below a field. a or b is nil if its profile
// leaves the field at its zero value.
func differ(list *[]Difference, path string, t reflect.Type, a, b *yaml.Node) error {
	// types that may have a name
	whole := t == reflect.TypeFor[fabric.Plan]() || t == reflect.TypeFor[hpu.CostTable]()
	if t.Kind() == reflect.Struct && !whole && (a != nil && a.Kind == yaml.MappingNode || b != nil && b.Kind == yaml.MappingNode) {
		for _, f := range strictyaml.FieldsOf(t).List {
			if err := differ(list, strings.TrimPrefix(path+"."+f.Name, "."), f.Type, strictyaml.Child(a, f.Name), strictyaml.Child(b, f.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	from, err := valueText(t, a)
	if err != nil {
		return err
	}
	to, err := valueText(t, b)
	if err != nil || from == to || path == "name" || path == "description" {
		return err
	}
	if t == reflect.TypeFor[hpu.CostTable]() {
		if from, err = costsName(from); err != nil {
			return err
		}
		if to, err = costsName(to); err != nil {
			return err
		}
	}
	*list = append(*list, Difference{path, from, to})
	return nil
}

// costsName returns the name of the embedded cost table with this text, or else
// the text.
func costsName(text string) (string, error) {
	for _, name := range CostNames() {
		table, err := Costs(name)
		if err != nil {
			return "", err
		}
		var tree yaml.Node
		var named bytes.Buffer
		if err := errors.Join(tree.Encode(table), strictyaml.WriteJSON(&named, &tree)); err != nil {
			return "", err
		}
		if text == named.String() {
			return name, nil
		}
	}
	return text, nil
}

// valueText writes the value of a field on one line.
func valueText(t reflect.Type, n *yaml.Node) (string, error) {
	switch {
	case n != nil && n.Kind == yaml.ScalarNode && n.Value == "":
		return `""`, nil
	case n != nil && n.Kind == yaml.ScalarNode:
		return n.Value, nil
	case n != nil:
		var text bytes.Buffer
		err := strictyaml.WriteJSON(&text, n)
		return text.String(), err
	case t == reflect.TypeFor[sim.Time](), t == reflect.TypeFor[nic.Delay]():
		return "0 s", nil
	case t == reflect.TypeFor[sim.Rate]():
		return "0ps/B", nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return "false", nil
	case reflect.Slice:
		return "[]", nil
	case reflect.Struct, reflect.Map:
		return "{}", nil
	case reflect.String:
		return `""`, nil
	}
	return "0", nil
}
