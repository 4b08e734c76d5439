package profile

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/strictyaml"
)

// MissingError says what a whole profile, one without a base, does not say:
// sections, or fields of a section. A result of an older version may lack what
// was not there then.
type MissingError struct{ Paths []string }

// Error says what to write.
func (e *MissingError) Error() string {
	return "missing in a whole profile; spinsim profile NAME prints one with every value, and a file with base: NAME takes what it does not say from there"
}

// whole notes which sections of a whole profile are missing, and which fields
// of those that are there, unless their zero value means that there is nothing.
func whole(r *strictyaml.Reader, tree *yaml.Node) {
	if tree.Kind != yaml.MappingNode {
		return // that has been said
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
			continue // name and description, which Validate knows; what a device may have
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
			if path := section.Name + "." + f.Name; !f.Optional && strictyaml.Child(given, f.Name) == nil && !r.Errors.Damaged(path) {
				fields = append(fields, path)
			}
		}
		missing(given, fields)
	}
	missing(tree, sections)
}
