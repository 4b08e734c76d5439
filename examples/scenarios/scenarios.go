// Package scenarios holds the scenarios that spinsim scenario example prints.
// They have comments, are complete, and check their own results.
package scenarios

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Example is a scenario of this package.
type Example struct {
	Name string // of the file, without .yaml
	Text []byte // YAML with comments
}

// All lists the examples in alphabetical order.
func All() ([]Example, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	list := make([]Example, len(entries))
	for i, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		list[i] = Example{Name: strings.TrimSuffix(e.Name(), ".yaml"), Text: text}
	}
	return list, nil
}

// Find returns the example with a name; its error lists all names.
func Find(name string) (Example, error) {
	all, err := All()
	if err != nil {
		return Example{}, err
	}
	var names []string
	for _, e := range all {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return Example{}, fmt.Errorf("no example %q, expected one of %s", name, strings.Join(names, ", "))
}
