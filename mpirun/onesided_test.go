//go:build programs

package mpirun

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// One-sided operations change the bytes that they should, and no others, in the
// same virtual time in each run: libfabric's, with what wrong keys, ranges and
// rights give, and those of MPI, over the device's own.
func TestOnesided(t *testing.T) {
	for _, name := range []string{"onesided", "window"} {
		program := compiled(t, name)
		for device, transport := range map[string]string{"spin-int": "portals", "exanest": "exanet"} { //lint:maporder each by itself
			for _, ranks := range []int{1, 2, 4} {
				first, out, err := try(t, device, transport, ranks, program)
				require.NoError(t, err, "%s of %d ranks on %s: %s", name, ranks, device, out)
				for range 2 {
					again, _, err := try(t, device, transport, ranks, program)
					require.NoError(t, err)
					require.Equal(t, first, again, "%s of %d ranks on %s", name, ranks, device)
				}
			}
		}
	}
}
