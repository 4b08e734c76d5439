package profile

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
)

// leaves calls visit for every field of a profile that holds a value, with its
// path as in --set.
func leaves(v reflect.Value, path string, visit func(path string, field reflect.Value)) {
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		field := v.Field(i)
		at := path + name
		switch {
		case name == "-":
		case option == "inline":
			leaves(field, path, visit)
		case field.Type() == reflect.TypeFor[nic.Delay]():
			leaves(field, at, visit)
		case field.Kind() == reflect.Struct && field.Type() != reflect.TypeFor[sim.Rate]():
			leaves(field, at+".", visit)
		default:
			visit(at, field)
		}
	}
}

// Every number of a profile has a minimum and a maximum, also in fields added
// later: the extremes of its type give an error with its path.
func TestEveryFieldIsBounded(t *testing.T) {
	for _, name := range Names() {
		p, err := Load(name)
		require.NoError(t, err)
		checked := 0
		leaves(reflect.ValueOf(p).Elem(), "", func(path string, field reflect.Value) {
			old := reflect.ValueOf(field.Interface())
			refused := func(v reflect.Value) {
				checked++
				field.Set(v)
				err := p.Validate()
				require.Error(t, err, "%s: %v", path, v)
				require.Contains(t, err.Error(), path+": ", "%v", v)
			}
			switch kind := field.Kind(); {
			case field.Type() == reflect.TypeFor[sim.Rate]():
				refused(reflect.ValueOf(sim.NewRate(math.MaxInt64, 1)))
				refused(reflect.ValueOf(sim.NewRate(1, math.MaxInt64)))
			case field.CanInt():
				bits := field.Type().Bits()
				if !strings.HasSuffix(path, ".radix") || p.Fabric.Kind != "crossbar" {
					refused(reflect.ValueOf(int64(1)<<(bits-1) - 1).Convert(field.Type()))
				}
				refused(reflect.ValueOf(int64(-1) << (bits - 1)).Convert(field.Type()))
			case kind == reflect.Float64:
				refused(reflect.ValueOf(-1e-9))
				refused(reflect.ValueOf(1 + 1e-9))
				refused(reflect.ValueOf(math.NaN()))
			// lists of structs: package fabric tests their bounds
			case kind == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct:
			case kind == reflect.Slice:
				kind := p.Fabric.Kind
				p.Fabric.Kind = fabric.Torus // whose dims are one
				for _, wrong := range []int64{math.MaxInt64, -1, math.MinInt64} {
					list := reflect.MakeSlice(field.Type(), 1, 1)
					list.Index(0).SetInt(wrong)
					refused(list)
				}
				p.Fabric.Kind = kind
			default:
				require.Contains(t, []reflect.Kind{reflect.String, reflect.Bool, reflect.Map}, kind, "%s: no rule for its type", path)
			}
			field.Set(old)
		})
		require.NoError(t, p.Validate())
		require.Greater(t, checked, 100)
	}
}
