package profile

import (
	"encoding"
	"reflect"
	"strings"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Fields lists the paths that an override may begin with, "hpu.cores", in the
// order of the fields of Profile. Sections with entries of any name, such as
// pools, and values that are whole, such as hpu.costs, are one path each.
func Fields() []string { return paths(nil, "", reflect.TypeFor[Profile]()) }

func paths(list []string, path string, t reflect.Type) []string {
	for _, f := range strictyaml.FieldsOf(t).List {
		at := strings.TrimPrefix(path+"."+f.Name, ".")
		if single(f.Type) {
			list = append(list, at)
		} else {
			list = paths(list, at, f.Type)
		}
	}
	return list
}

// single reports whether values of a type are written as one, whatever they are
// made of: those that may have a name, too.
func single(t reflect.Type) bool {
	return t.Kind() != reflect.Struct || t == reflect.TypeFor[fabric.Plan]() || t == reflect.TypeFor[hpu.CostTable]() ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
