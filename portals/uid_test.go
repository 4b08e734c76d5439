package portals

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The user id is in its bits, whatever the initiator has written there, and nowhere else.
func TestStamp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Stamp{Shift: uint8(rapid.IntRange(0, 63).Draw(t, "shift"))}
		s.Bits = uint8(rapid.IntRange(0, 64-int(s.Shift)).Draw(t, "bits"))
		bits, uid := rapid.Uint64().Draw(t, "match bits"), rapid.Uint32().Draw(t, "uid")
		is := s.On(bits, uid)
		for i := range uint8(64) {
			want := bits >> i & 1
			if i >= s.Shift && i < s.Shift+s.Bits {
				want = uint64(uid) >> (i - s.Shift) & 1
			}
			require.Equal(t, want, is>>i&1, "bit %d", i)
		}
	})
}

// A process has the user id that the system gives it, on interfaces that are open, too. A stamp
// beyond the match bits is refused.
func TestSetUID(t *testing.T) {
	p := NewNode(1, 2).NewProcess(ProcessConfig{UID: 3})
	require.NoError(t, p.Init())
	ni, _, err := p.NIInit(IfaceDefault, OptNINoMatching|OptNIPhysical, 2, nil)
	require.NoError(t, err)
	for _, uid := range []uint32{3, 70000} {
		p.SetUID(uid)
		got, err := ni.UID()
		require.NoError(t, err)
		require.Equal(t, uid, got)
	}
	pt, err := ni.PTAlloc(0, EQNone, PTAny)
	require.NoError(t, err)
	_, err = ni.LEAppend(pt, &LE{UID: UIDAny, Spin: &Spin{Stamp: Stamp{Shift: 50, Bits: 15}}}, PriorityList, 0)
	require.ErrorIs(t, err, ErrArgInvalid)
	require.ErrorContains(t, err, "user id in 15 bits from 50 on, match bits have 64")
}
