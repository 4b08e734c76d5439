//go:build invariants

package poison

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMark(t *testing.T) {
	var m Mark
	m.Live("x")
	m.Release("x")
	require.PanicsWithValue(t, "x is used after it was given back", func() { m.Live("x") })
	require.PanicsWithValue(t, "x is given back twice", func() { m.Release("x") })
}

func TestBuffers(t *testing.T) {
	var s Buffers
	b := make([]byte, 3, 8)
	s.Taken(b)
	s.Released(b[:0])
	require.Equal(t, []byte{Byte, Byte, Byte, Byte, Byte, Byte, Byte, Byte}, b[:8])
	require.Panics(t, func() { s.Released(b) })
	s.Taken(make([]byte, 1))
	require.Equal(t, 1, s.Live())
	var c Count
	c.Add(3)
	c.Add(-1)
	require.Equal(t, 2, c.Live())
	Check(b, "a buffer")
	b[:8][5] = 1
	require.PanicsWithValue(t, "a buffer was written at byte 5 after it was given back", func() { Check(b, "a buffer") })
}
