package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// Units that nobody uses change no time, whatever the network and its faults.
func TestIdleUnits(t *testing.T) {
	for _, set := range [][]string{
		{"fabric.kind=crossbar"},
		{"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=2", "fabric.spines=2"},
		{"fabric.radix=4", "fabric.faults={loss: 0.01}"},
		{"fabric.kind=torus", "fabric.dims=[3, 2]", "fabric.buffer=1KiB"},
	} {
		plain, words := exchange(t, 5, 6, nil, set...)
		with, same := exchange(t, 5, 6, nil, append(set, "fabric.units={at: leaves, rate: 1ps/B, wire: 1ps}")...)
		require.Equal(t, words, same)
		require.Equal(t, plain.Engine().Now(), with.Engine().Now())
		require.Equal(t, plain.Stats(), with.Stats())
		require.Equal(t, plain.Fabric().Links(), with.Fabric().Links())
		require.Equal(t, 5, with.Nodes())
		require.Nil(t, fabric.UnitsOf(plain.Fabric()))
	}
}

// Programs run on units: they follow the nodes.
func TestProgramsOnUnits(t *testing.T) {
	p, err := profile.Load("spin-int", "fabric.radix=4", "fabric.units={at: leaves, rate: 1ps/B, wire: 1ps}")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 5, Engine: labEngine})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	first, behind := fabric.UnitsOf(c.Fabric()).Nodes()
	require.Equal(t, []int{5, 8}, []int{first, behind})
	seen := portals.ID{}
	require.NoError(t, c.Spawn(7, "unit", func(p *runtime.Proc) (err error) {
		seen, err = p.NI().Objects().PhysID()
		return err
	}))
	require.EqualError(t, c.Spawn(8, "unit", nil), "runtime: no rank 8, expected 0 to 7")
	require.NoError(t, c.Run(t.Context()))
	require.Equal(t, portals.PhysID(7, 0), seen)
}
