package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/exanest"
	"github.com/spinsim/spinsim/internal/osu"
)

// A run that has ended early prints nothing for numbers of ranks that it has
// not reached: a header without lines would look like a result.
func TestOSUPrintsWhatThereIs(t *testing.T) {
	b, err := osu.Find("bcast")
	require.NoError(t, err)
	s, err := experiment.New(exanest.OSURanks)
	require.NoError(t, err)
	for axis, list := range map[string]string{"ranks": "2,4,8", "benchmark": b.Name, "size": "4"} {
		require.NoError(t, s.Choose(axis, list))
	}
	points, err := s.Points()
	require.NoError(t, err)
	require.Len(t, points, 3)
	results, err := s.Run(t.Context(), points[1:2], nil)
	require.NoError(t, err)
	var out bytes.Buffer
	f := &osuFlags{benchmark: b, like: string(osu.Version5)}
	require.NoError(t, f.print(&out, s, results))
	require.Equal(t, 1, strings.Count(out.String(), "OSU MPI Broadcast"), out.String())
	require.Contains(t, out.String(), "# 4 ranks, ")
	require.NotContains(t, out.String(), "\n\n\n")
}
