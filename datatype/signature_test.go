package datatype_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/internal/typetest"
)

// basics lists the basic types of an element by the definition of each
// constructor.
func basics(t require.TestingT, d *datatype.Type) (list []string) {
	c, _, _, _ := d.Envelope()
	if c == datatype.Named {
		return []string{d.String()}
	}
	args, err := d.Contents()
	require.NoError(t, err)
	if c == datatype.CombinerStruct {
		for i, o := range args.Types {
			for range args.Integers[1+i] {
				list = append(list, basics(t, o)...)
			}
		}
		return list
	}
	old := basics(t, args.Types[0])
	for size := int64(0); size < d.Size(); size += args.Types[0].Size() {
		list = append(list, old...)
	}
	return list
}

// Signatures are equal exactly when the lists of basic types are equal,
// whatever constructors made the types.
func TestSignature(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := typetest.Draw(rt, 3), typetest.Draw(rt, 3)
		n := rapid.IntRange(0, 3).Draw(rt, "n")
		of := func(d *datatype.Type, n int) (list []string) {
			for range n {
				list = append(list, basics(rt, d)...)
			}
			return list
		}
		x, y := of(a, n), of(b, 1)
		require.EqualValues(rt, len(x), a.Signature(n).Elements)
		same := len(x) == len(y)
		for i := 0; same && i < len(x); i++ {
			same = x[i] == y[i]
		}
		require.Equal(rt, same, a.Signature(n) == b.Signature(1))
		one := len(y) > 0
		for _, name := range y {
			one = one && name == y[0]
		}
		if basic := b.Basic(); one {
			require.NotNil(rt, basic)
			require.Equal(rt, y[0], basic.String())
		} else {
			require.Nil(rt, basic)
		}
		pair, err := datatype.Struct([]int{1, 1}, []int64{0, 1 << 20}, []*datatype.Type{a, b})
		require.NoError(rt, err)
		back, err := datatype.Struct([]int{1, 1}, []int64{0, 1 << 20}, []*datatype.Type{b, a})
		require.NoError(rt, err)
		forth, and := append(of(a, 1), y...), append(of(b, 1), of(a, 1)...)
		require.Equal(rt, equalLists(forth, and), pair.Signature(1) == back.Signature(1))
	})
}

func equalLists(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
