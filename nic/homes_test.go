package nic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// A message's handlers go to its home until that has as many as it takes, then
// to the cluster with the fewest, the lowest number first.
func TestHomesChoose(t *testing.T) {
	h := homes{most: 2, clusters: make([]home, 3)}
	var got []int
	for {
		i, ok := h.choose(4) // 4 modulo 3 clusters
		if !ok {
			break
		}
		got = append(got, i)
		h.clusters[i].has++
	}
	require.Equal(t, []int{1, 1, 0, 2, 0, 2}, got)
	h.clusters[1].has--
	i, ok := h.choose(4)
	require.Equal(t, 1, i)
	require.True(t, ok)
}

// Fields that nothing would read are errors.
func TestHomesNeedClusters(t *testing.T) {
	for want, s := range map[string]HPUSpec{
		"home: message needs hpu.clusters of 2 or more":     {Home: HomeMessage, Clusters: 1},
		"home: absent, but cluster_tasks and copy need one": {ClusterTasks: 1, Clusters: 2},
		"cluster_tasks: -1": {Home: HomeMessage, Clusters: 2, ClusterTasks: -1},
		"send: -1":          {Send: Delay{Fixed: -1 * sim.Nanosecond}},
	} {
		require.ErrorContains(t, s.Validate(64), want)
	}
}
