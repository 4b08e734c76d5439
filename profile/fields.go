package profile

import (
	"encoding"
	"reflect"
	"strings"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Fields lists the paths with which an override may begin, such as "hpu.cores",
// in the order of the fields of Profile. A section with entries of any name,
// such as pools, is one path. So is a value that is written as a whole, such as
// hpu.costs.
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

// single reports whether values of a type are written as one, for example
// because they may have a name.
func single(t reflect.Type) bool {
	return t.Kind() != reflect.Struct || t == reflect.TypeFor[fabric.Plan]() || t == reflect.TypeFor[hpu.CostTable]() ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
