package rnr

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// The times of RNR NACKs equal Linux's for the 5 bits of InfiniBand (enum
// ib_rnr_timeout, include/rdma/ib_verbs.h). Names there are milliseconds with
// two digits after the point. The longest belongs to code 0.
func TestPausesAreInfiniBands(t *testing.T) {
	linux := [...]string{
		"655_36", "000_01", "000_02", "000_03", "000_04", "000_06", "000_08", "000_12", "000_16", "000_24", "000_32", "000_48", "000_64", "000_96", "001_28", "001_92",
		"002_56", "003_84", "005_12", "007_68", "010_24", "015_36", "020_48", "030_72", "040_96", "061_44", "081_92", "122_88", "163_84", "245_76", "327_68", "491_52",
	}
	for code, name := range linux {
		hundredths := Pause(code) / (10 * sim.Microsecond)
		require.Equal(t, name, fmt.Sprintf("%03d_%02d", hundredths/100, hundredths%100), "code %d", code)
		require.Zero(t, Pause(code)%(10*sim.Microsecond))
		require.LessOrEqual(t, Pause(code), MaxPause*sim.Nanosecond)
	}
	require.Equal(t, MaxPause*sim.Nanosecond, Pause(0))
}
