//go:build !invariants

package poison

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Without the tag a mark costs nothing.
func TestNothing(t *testing.T) {
	var x struct {
		Mark
		n int64
	}
	x.Release("x")
	x.Live("x")
	x.Release("x")
	require.Equal(t, unsafe.Sizeof(x.n), unsafe.Sizeof(x))
	var c Count
	c.Add(3)
	require.Zero(t, c.Live()+new(Buffers).Live())
	b := []byte{1}
	Bytes(b)
	require.Equal(t, []byte{1}, b)
}
