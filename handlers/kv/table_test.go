package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// A walk of the host ends, although handlers have linked an item to itself.
func TestListsWithoutEnd(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 1})
	require.NoError(t, err)
	require.NoError(t, c.Spawn(0, "server", func(p *runtime.Proc) error {
		x := &table{p: p, area: p.Alloc(4096)}
		const bucket, item = 64, 128
		x.setWord(bucket, Link(item, 0, 1))
		x.setWord(item, Link(item, 0, 1))
		require.PanicsWithValue(t, "kv: the list of a bucket has no end", func() {
			x.find(&part{table: Link(bucket, 0, 0)}, []byte("key"), 2)
		})
		return nil
	}))
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, c.Close())
}
