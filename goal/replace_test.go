package goal

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// same returns the operations of a collective at a rank as parts.
func same(s *Schedule, coll, rank int) (list []Part) {
	v := s.Rank(rank)
	at := make(map[int]int)
	for i := range v.Len() {
		if v.Collective(i) == coll {
			at[i] = len(list)
			list = append(list, Part{Op: v.Op(i)})
		}
	}
	for y, k := range at { //lint:maporder each entry of After is of another y
		for x := range v.AfterDone(y) {
			if to, inside := at[x]; inside {
				list[to].After = append(list[to].After, k)
			}
		}
	}
	return list
}

// Collectives whose operations are replaced by the same ones keep their contents,
// and the schedule its messages. Without a replacement it is the same schedule.
func TestReplaceBySame(t *testing.T) {
	t.Parallel()
	replaced := 0
	for seed := range uint64(2000) {
		s := randomSchedule(t, rand.New(rand.NewPCG(seed, 9)), true)
		again, err := s.Replace(func(int, int) ([]Part, bool) { return nil, false })
		require.NoError(t, err)
		require.Equal(t, binaryOf(t, s)[magicBytes+6:], binaryOf(t, again)[magicBytes+6:], "nothing replaced")
		before, err := NewSimulator(s).Run(DefaultParams())
		if err != nil || len(s.Collectives()) == 0 {
			continue
		}
		other, err := s.Replace(func(coll, rank int) ([]Part, bool) { return same(s, coll, rank), true })
		if err != nil {
			require.ErrorContains(t, err, "cannot have other operations")
			continue
		}
		require.Equal(t, s.Collectives(), other.Collectives())
		require.Equal(t, s.Contents(), other.Contents())
		if after, err := NewSimulator(other).Run(DefaultParams()); err == nil {
			replaced++
			require.Equal(t, before.Messages, after.Messages)
		}
	}
	require.Greater(t, replaced, 30)
}
