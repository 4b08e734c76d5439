package runtime

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/poison"
)

// Nodes lie side by side, each from a cache line of 64 bytes on, with its NIC
// first: what is in them must not grow unnoticed.
func TestNodesAreWholeCacheLines(t *testing.T) {
	if poison.On { // marked objects are larger
		return
	}
	node := reflect.TypeFor[Node]()
	require.Zero(t, node.Size()%64, "%d bytes", node.Size())
	nic, _ := node.FieldByName("nic")
	bus, _ := node.FieldByName("bus")
	require.Zero(t, nic.Offset)
	require.Zero(t, bus.Offset%64)
}
