package profile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// CostNames lists the embedded cost tables in alphabetical order.
func CostNames() []string { return embeddedNames("profiles/costs") }

// CostSource returns the text of an embedded cost table, comments included.
func CostSource(name string) ([]byte, error) {
	data, err := files.ReadFile("profiles/costs/" + name + ".yaml")
	if err != nil || strings.Contains(name, "/") {
		return nil, fmt.Errorf("no cost table %q, expected one of %s or a mapping%s", name, strings.Join(CostNames(), ", "), fields.DidYouMean(name, CostNames()))
	}
	return data, nil
}

// Costs returns an embedded cost table.
func Costs(name string) (*hpu.CostTable, error) {
	tree, err := costTree(name)
	if err != nil {
		return nil, err
	}
	table, r := new(hpu.CostTable), strictyaml.Reader{File: name}
	if r.Read(tree, table); r.Errors != nil {
		return nil, r.Errors.Join()
	}
	return table, nil
}

// costTree returns an embedded cost table as a tree, which must not be changed.
func costTree(name string) (*yaml.Node, error) { return embedded(&costTrees, name, CostSource) }
