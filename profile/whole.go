package profile

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// MissingError lists the sections and fields that are missing from a whole
// profile, one without a base. For example, a result of an older version lacks
// newer fields.
type MissingError struct{ Paths []string }

// Error lists the fields to add.
func (e *MissingError) Error() string {
	return "missing in a whole profile; spinsim profile NAME prints one with every value, and a file with base: NAME takes what it does not say from there"
}

// whole reports missing sections and missing fields of a whole profile, unless
// the zero value means absent.
func whole(r *strictyaml.Reader, tree *yaml.Node) {
	if tree.Kind != yaml.MappingNode {
		return // already reported
	}
	missing := func(at *yaml.Node, paths []string) {
		if paths != nil {
			r.Fail(at, strings.Join(paths, ", "), "%w", &MissingError{paths})
		}
	}
	var sections []string
	for _, section := range strictyaml.FieldsOf(reflect.TypeFor[Profile]()).List {
		given := strictyaml.Child(tree, section.Name)
		if section.Type.Kind() != reflect.Struct || section.Optional {
			continue // name and description, which Validate checks; optional parts of a device
		}
		if given == nil {
			sections = append(sections, section.Name)
			continue
		}
		if given.Kind != yaml.MappingNode {
			continue
		}
		var fields []string
		for _, f := range strictyaml.FieldsOf(section.Type).List {
			if path := section.Name + "." + f.Name; !f.Optional && strictyaml.Child(given, f.Name) == nil {
				fields = append(fields, path)
			}
		}
		missing(given, fields)
	}
	missing(tree, sections)
}
