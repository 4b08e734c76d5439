//go:build programs

package mpirun

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// One-sided operations change the bytes that they should, and no others, in the
// same virtual time in each run: libfabric's, with what wrong keys, ranges and
// rights give, and those of MPI, over the device's own.
func TestOnesided(t *testing.T) {
	for _, command := range []string{"onesided", "onesided basic", "window"} {
		name, basic, _ := strings.Cut(command, " ") // basic: remote addresses are the process's
		program := append([]string{compiled(t, name)}, strings.Fields(basic)...)
		for device, transport := range map[string]string{"spin-int": "portals", "exanest": "exanet"} { //lint:maporder each by itself
			for _, ranks := range []int{1, 2, 4} {
				first, out, err := try(t, device, transport, ranks, program...)
				require.NoError(t, err, "%s of %d ranks on %s: %s", command, ranks, device, out)
				if name == "onesided" {
					require.Positive(t, first.Onesided)
				}
				for range 2 {
					again, _, err := try(t, device, transport, ranks, program...)
					require.NoError(t, err)
					require.Equal(t, first, again, "%s of %d ranks on %s", command, ranks, device)
				}
			}
		}
	}
}

// A program without MPI has endpoints, too. Its processes may agree by sockets: one
// that waits there lets the others go on.
func TestAlone(t *testing.T) {
	program := compiled(t, "alone")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	for device, transport := range map[string]string{"spin-int": "portals-offload", "exanest": "exanet"} { //lint:maporder each by itself
		_, out, err := try(t, device, transport, 2, program, port)
		require.NoError(t, err, "%s: %s", device, out)
	}
}
