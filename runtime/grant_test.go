package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// A process grants memory of its own, to handlers of its own node, and never so
// much that the number of a space would say something else (TELL_FAULTS).
func TestGrant(t *testing.T) {
	var memory *nic.Memory
	owner := func(p *runtime.Proc) error {
		module, err := p.Cluster().LoadModule("count", count.Library.Wasm)
		require.NoError(t, err)
		memory, err = p.HPUAllocMem(module, 64)
		require.NoError(t, err)
		return nil
	}
	var others runtime.View
	elsewhere := func(p *runtime.Proc) error {
		others = p.Alloc(8)
		_, err := p.Grant(memory, others)
		require.EqualError(t, err, "runtime: process program of rank 1 can grant memory of its own, to handlers of its own node")
		require.ErrorIs(t, p.Revoke(memory, 2), portals.ErrArgInvalid, "it is nobody's, or another's")
		return nil
	}
	beside := func(p *runtime.Proc) error {
		mine := p.Alloc(64)
		for space := uint32(2); space < 256; space++ {
			got, err := p.Grant(memory, mine)
			require.NoError(t, err)
			require.Equal(t, space, got)
		}
		_, err := p.Grant(memory, mine)
		require.ErrorIs(t, err, portals.ErrNoSpace)
		_, err = p.Grant(memory, others)
		require.ErrorContains(t, err, "memory of its own")
		for _, wrong := range []uint32{0, 1, 256, ^uint32(0)} {
			require.ErrorIs(t, p.Revoke(memory, wrong), portals.ErrArgInvalid)
		}
		require.NoError(t, p.Revoke(memory, 7))
		require.ErrorIs(t, p.Revoke(memory, 7), portals.ErrArgInvalid)
		got, err := p.Grant(memory, mine)
		require.NoError(t, err)
		require.Equal(t, uint32(7), got, "a number is given out again")
		require.NoError(t, memory.Free())
		require.ErrorIs(t, p.Revoke(memory, 7), portals.ErrArgInvalid)
		_, err = p.Grant(memory, mine)
		require.ErrorIs(t, err, portals.ErrArgInvalid)
		return nil
	}
	_, err := program(t, 2, map[int][]func(p *runtime.Proc) error{0: {owner, beside}, 1: {elsewhere}})
	require.NoError(t, err)
}
