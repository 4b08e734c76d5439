package nic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
)

// What an absent page holds up is a line, and each is by itself: of one
// process, one other node, and what arrives from it, what is sent to it, what
// it is answered. Where memory is always there nobody waits in one.
func TestLinesAreApart(t *testing.T) {
	x := newAlone(t, kindsOfMatch)
	require.Nil(t, x.iface.lineOf(forRequests, 2))
	x.buses.Translate(hosttest.Func(func(*host.Access, int, int) host.Status { return host.OK }))
	other := &Interface{env: &x.env}
	lines := map[*host.Order]bool{}
	for _, i := range []*Interface{x.iface, other} {
		for _, node := range []int32{2, 3} {
			for kind := range lineKinds {
				line := i.lineOf(kind, node)
				require.NotNil(t, line)
				require.Same(t, line, i.lineOf(kind, node))
				require.False(t, lines[line], "a line of two")
				lines[line] = true
			}
		}
	}
	require.Len(t, lines, 12)
}
