package runtime_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
)

// What a payload handler sees begins at a multiple of min_fragmentation_limit
// in the message, and, but for the last of it, is a multiple long (sPIN'17
// B.2.1), whatever the packets of the network and the user header, which is a
// multiple, too.
func TestPiecesAreMultiplesOfTheLimit(t *testing.T) {
	const length = 10000
	for _, mtu := range []int{256, 1004, 1500, 4096} {
		override := fmt.Sprintf("fabric.mtu=%d", mtu)
		device, err := profile.Load("spin-dis", override)
		require.NoError(t, err)
		unit := device.PortalsLimits().MinFragmentationLimit
		for header := uint64(0); header <= 6*unit; header += unit {
			r := conduct(t, setup{
				overrides: []string{override}, length: length, userHdr: header, header: []rec{end(hpu.ProcessData)}, payload: []rec{end(hpu.Success)},
			})
			seen := uint64(0)
			for _, s := range r.steps {
				if s.What != nic.StepBegan || s.Handler != "payload" {
					continue
				}
				n, at := uint64(binary.LittleEndian.Uint32(s.Record[4:])), binary.LittleEndian.Uint64(s.Record[8:])
				require.Zero(t, at%unit)
				if seen += n; at+n != length-header {
					require.Zero(t, n%unit, "%d B at %d, packets of %d, user header of %d", n, at, mtu, header)
				}
			}
			require.Equal(t, length-header, seen)
		}
	}
}
