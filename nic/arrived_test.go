package nic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Packets that come in any order, some twice or more often, some never: the
// first of each is known as the first, and what is kept is in proportion to the
// messages that are not whole, however many there have been.
func TestArrivedPacketsAreKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type packet struct{ n, i int }
		messages := rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 1, 2, 3, 64, 65, 130}), 1, 60).Draw(t, "packets")
		var all []packet
		for n, packets := range messages {
			for i := range packets {
				if rapid.IntRange(0, 60).Draw(t, "lost") == 0 {
					continue
				}
				p := packet{n, i}
				all = append(all, p)
				for rapid.IntRange(0, 5).Draw(t, "again") == 0 {
					all = append(all, p)
				}
			}
		}
		if rapid.Bool().Draw(t, "in any order") {
			all = rapid.Permutation(all).Draw(t, "order")
		}
		var k arrivedOf
		seen, left := map[packet]bool{}, map[int]int{}
		begun := 0
		for _, p := range all {
			require.Equal(t, !seen[p], k.firstTime(uint64(p.n)+1, p.i, messages[p.n]), "%v", p)
			if !seen[p] {
				seen[p] = true
				left[p.n]++
			}
			// messages of which some, but not all has come; and those that are
			// not whole before the last that is
			open, missing := 0, 0
			begun = max(begun, p.n+1)
			for n := range begun {
				switch {
				case left[n] == messages[n]:
				case left[n] > 0:
					open++
					missing++
				default:
					missing++
				}
			}
			require.Len(t, k.parts, open)
			require.LessOrEqual(t, len(k.whole), missing+1)
		}
	})
}

// A million messages in order leave one run, and cost no memory each.
func TestArrivedPacketsCostNothing(t *testing.T) {
	var k arrivedOf
	n := uint64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		for range 1000 {
			n++
			require.True(t, k.firstTime(n, 0, 1))
			require.False(t, k.firstTime(n, 0, 1))
			require.False(t, k.firstTime(1+n/2, 0, 1))
		}
	}))
	require.Equal(t, []numbers{{1, n}}, k.whole)
	require.Empty(t, k.parts)
}
