package portals

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// A part of a put is told from the whole by its place and length only: a field
// that Header gets must be one that a part has, too.
func TestPartOf(t *testing.T) {
	var whole Header
	v := reflect.ValueOf(&whole).Elem()
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		default:
			v.SetUint(77)
		}
	}
	fill(v)
	var part Header
	part.PartOf(&whole, 1000, 256)
	require.Equal(t, []uint64{1077, 256}, []uint64{part.RemoteOffset, part.RLength})
	require.Zero(t, part.Operand, "a put has none")
	part.RemoteOffset, part.RLength, part.Operand = whole.RemoteOffset, whole.RLength, whole.Operand
	require.Equal(t, whole, part)
}
