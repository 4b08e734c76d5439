package wasm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestNumbers writes numbers and reads them back, also with bytes of padding,
// which the format allows up to the width.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, s := rapid.Uint32().Draw(t, "u"), rapid.Int64().Draw(t, "s")
		i := int64(rapid.Int32().Draw(t, "i"))
		b := AppendS64(AppendS64(AppendU32(nil, u), s), i)
		r := reader{b: b, end: len(b)}
		require.Equal(t, u, r.u32())
		require.Equal(t, s, r.signed(64))
		require.Equal(t, i, r.signed(32))
		require.Zero(t, r.rest())
		require.Nil(t, r.err)
	})
}

// TestLongNumbers reads what is longer than the width allows, or padded to the limit.
func TestLongNumbers(t *testing.T) {
	for _, x := range []struct {
		bytes string
		bits  uint // 0: unsigned, 32 bits
		want  int64
		bad   bool
	}{
		{"\x80\x80\x80\x80\x00", 0, 0, false},
		{"\xff\xff\xff\xff\x0f", 0, 1<<32 - 1, false},
		{"\xff\xff\xff\xff\x1f", 0, 0, true},
		{"\x80\x80\x80\x80\x80\x00", 0, 0, true},
		{"\xff\xff\xff\xff\x7f", 32, -1, false},
		{"\x80\x80\x80\x80\x78", 32, -1 << 31, false},
		{"\xff\xff\xff\xff\x07", 32, 1<<31 - 1, false},
		{"\xff\xff\xff\xff\x0f", 32, 0, true},
		{"\x80\x80\x80\x80\x70", 32, 0, true},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 64, -1 << 63, false},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 64, 0, true},
		{"\x80", 64, 0, true},
	} {
		r := reader{b: []byte(x.bytes), end: len(x.bytes)}
		var got int64
		if x.bits == 0 {
			got = int64(r.u32())
		} else {
			got = r.signed(x.bits)
		}
		require.Equal(t, x.bad, r.err != nil, "%x", x.bytes)
		if !x.bad {
			require.Equal(t, x.want, got, "%x", x.bytes)
		}
	}
}
