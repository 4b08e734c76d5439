package nic

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/poison"
)

// What every packet touches is whole cache lines of 64 bytes, and so are the
// stages in their NIC. Some of it is made of types of other packages, which
// must not grow unnoticed.
func TestHotObjectsAreWholeCacheLines(t *testing.T) {
	if poison.On { // marked objects are larger
		return
	}
	for _, x := range []any{NIC{}, Interface{}, Frame{}, dmaOp{}, run{}, core{}, pool{}, delivered{}} {
		require.Zero(t, reflect.TypeOf(x).Size()%64, "%T has %d bytes", x, reflect.TypeOf(x).Size())
	}
	n := reflect.TypeFor[NIC]()
	for _, stage := range way {
		field, _ := n.FieldByName(stage)
		// which shares a line with what all stages have
		if field.Type.Kind() == reflect.Struct && stage != "deposit" {
			require.Zero(t, field.Offset%64, stage)
		}
	}
	op := reflect.TypeFor[dmaOp]()
	access, _ := op.FieldByName("access")
	state, _ := op.FieldByName("dmaState")
	require.Zero(t, access.Offset)
	require.Zero(t, state.Offset%64)
}
