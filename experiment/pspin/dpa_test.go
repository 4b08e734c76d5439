package pspin

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
)

// What the header of profile dpa says of its other extreme can be set, and
// charges a handler 115 cycles for each access to L3, which it does not have by
// default.
func TestOtherExtremeOfDPA(t *testing.T) {
	text, err := profile.Source("dpa")
	require.NoError(t, err)
	var set []string
	for _, m := range regexp.MustCompile(`--set (\S+)`).FindAllSubmatch(text, -1) {
		set = append(set, string(m[1]))
	}
	require.Len(t, set, 4)
	cycles := func(example string, set ...string) int64 {
		r := at(t, "profile=dpa packets=4 size=64 example="+example, set...)
		return r.Values["warm"].(int64)
	}
	for _, example := range []string{"ping_pong", "copy_to_host", "filtering"} {
		waits := cycles(example, set...) - cycles(example)
		require.Positive(t, waits, example)
		require.Zero(t, waits%115, example)
	}
}
