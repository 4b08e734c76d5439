package fields

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// Bounds are inclusive. Errors name the field, its value and the expected
// values, and errors of a section get its path one by one.
func TestErrors(t *testing.T) {
	var e Errors
	require.NoError(t, e.Join())
	for v := range 6 {
		Between(&e, "n", v, 1, 4)
	}
	Between(&e, "t", -sim.Nanosecond, 0, sim.Second)
	Between(&e, "t", sim.Second, 0, sim.Second)
	e.OneOf("kind", "b", "a", "b")
	e.OneOf("kind", "c", "a", "b")
	e.Add("rate", nil)
	e.Add("rate", errors.New("too slow"))
	require.EqualError(t, e.Join(), "n: 0, expected 1 to 4\nn: 5, expected 1 to 4\nt: -1 ns, expected 0 s to 1 s\n"+
		`kind: "c", expected a or b`+"\nrate: too slow")

	cause := errors.New("x: 1")
	var all Errors
	all.Below("hpu", errors.Join(cause, errors.Join(errors.New("y: 2"), nil)))
	all.Below("dma", errors.New("z: 3"))
	all.Below("nic", nil)
	require.EqualError(t, all.Join(), "hpu.x: 1\nhpu.y: 2\ndma.z: 3")
	require.Len(t, all, 3)
	require.ErrorIs(t, all.Join(), cause)
}
