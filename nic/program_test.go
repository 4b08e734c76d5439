package nic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
)

// The handler part of entries of two NICs and of two entries may be one object:
// each NIC finds its own memory, and messages on their way keep the handlers
// that their entry had when they came.
func TestHandlerPartOfSeveralEntries(t *testing.T) {
	a, b := &NIC{memories: []*Memory{{name: "a", addr: 1000}}}, &NIC{memories: []*Memory{{name: "b", addr: 2000}}}
	s := &portals.Spin{HPUMem: 1}
	a.note(s)
	first := a.installed(s)
	require.Same(t, first, a.installed(s))
	a.note(s)
	require.Same(t, first, a.installed(s), "nothing has changed")
	b.note(s)
	require.Equal(t, "b", b.installed(s).memory.name)
	require.Equal(t, "a", a.installed(s).memory.name)
	s.HPUMemOffset = 64
	a.note(s)
	require.Equal(t, []uint32{1000, 1064, 2064}, []uint32{first.state, a.installed(s).state, b.installed(s).state})
}
