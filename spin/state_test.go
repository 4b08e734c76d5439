package spin_test

import (
	"structs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/spin"
)

func TestStateRoundTrip(t *testing.T) {
	type state struct {
		_     structs.HostLayout
		Big   uint64
		Small [2]uint16
		Flag  uint32
	}
	in := state{Big: 0x0102030405060708, Small: [2]uint16{1, 2}, Flag: 9}
	b := spin.EncodeState(&in)
	require.Equal(t, []byte{8, 7, 6, 5, 4, 3, 2, 1, 1, 0, 2, 0, 9, 0, 0, 0}, b)
	var out state
	require.NoError(t, spin.DecodeState(append(b, 0xff), &out))
	require.Equal(t, in, out)
	require.ErrorContains(t, spin.DecodeState(b[:15], &out), "takes 16 bytes, got 15")
}

// A gap would shift the fields behind it: memory has it, the encoding does not.
func TestStateWithGapPanics(t *testing.T) {
	type gap struct {
		_     structs.HostLayout
		Small uint32
		Big   uint64
	}
	require.Panics(t, func() { spin.EncodeState(&gap{}) })
	type unsized struct{ N int }
	require.Panics(t, func() { spin.EncodeState(&unsized{}) })
}
