package portals

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An object more than a limit allows is an error that says which limit of the profile it was.
func TestExhaustedLimitsAreNamed(t *testing.T) {
	for limit, more := range map[string]func(ni *NI, ct Handle) error{
		"max_eqs": func(ni *NI, _ Handle) error { _, err := ni.EQAlloc(1); return err },
		"max_cts": func(ni *NI, _ Handle) error { _, err := ni.CTAlloc(); return err },
		"max_mds": func(ni *NI, _ Handle) error { _, err := ni.MDBind(&MD{}); return err },
		"max_entries": func(ni *NI, _ Handle) error {
			_, err := ni.MEAppend(0, &ME{UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut}, PriorityList, 0)
			return err
		},
		"max_triggered_ops": func(ni *NI, ct Handle) error {
			return ni.Triggered(CTInc{CT: ct, Increment: CTEvent{Success: 1}}, ct, 5)
		},
	} {
		ni := testNI(t, OptNIMatching|OptNIPhysical)
		_, err := ni.PTAlloc(0, EQNone, 0)
		require.NoError(t, err)
		ct, err := ni.CTAlloc()
		require.NoError(t, err)
		ni.limits.MaxEQs, ni.limits.MaxCTs, ni.limits.MaxMDs, ni.limits.MaxEntries, ni.limits.MaxTriggeredOps = 3, 3, 3, 3, 3
		for err = nil; err == nil; err = more(ni, ct) {
		}
		require.ErrorIs(t, err, ErrNoSpace, limit)
		require.EqualError(t, err, "portals: PTL_NO_SPACE: limits."+limit+" is 3")
	}
}
