package nic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A ring gives back what was put in, in order, whatever its size and the
// mixture of pushes and pops.
func TestRingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring[int]
		var want []int
		for i := range rapid.IntRange(1, 300).Draw(t, "steps") {
			if len(want) > 0 && rapid.Bool().Draw(t, "pop") {
				require.Equal(t, want[0], r.front())
				require.Equal(t, want[0], r.pop())
				want = want[1:]
			} else {
				r.push(i)
				want = append(want, i)
			}
			require.Equal(t, len(want), r.len())
		}
	})
}
