package portals

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A list with any number of wildcards answers like a walk over its entries in
// order, also while classes are opened, filled with older entries and given up.
func TestListFindsTheFirst(t *testing.T) {
	require.Greater(t, compareList(t, 400, 9, 1500, 1), 2*fewClasses, "there are many classes")
	rapid.Check(t, func(rt *rapid.T) {
		masks, grows := rapid.SampledFrom([]int{1, 7, 8, 9, 40, 400}).Draw(rt, "masks"), rapid.SampledFrom([]int{1, 3, 9}).Draw(rt, "grows")
		compareList(rt, masks, grows, rapid.IntRange(1, 1500).Draw(rt, "steps"), rapid.Uint64().Draw(rt, "draw"))
	})
}

// compareList adds entries with some masks to a list, in grows of ten steps, and
// removes them in the others. It returns the most classes that there were.
func compareList(t require.TestingT, masks, grows, steps int, draw uint64) (most int) {
	var list entryList
	var entries []*entry
	next := func(n int) int {
		draw = draw*6364136223846793005 + 1442695040888963407
		return int(draw >> 33 % uint64(n))
	}
	walk := func(h *Header, id uint64) *entry {
		for _, e := range entries {
			if e.accepts(h, id) {
				return e
			}
		}
		return nil
	}
	for range steps {
		if len(entries) == 0 || next(10) < grows {
			e := &entry{matchBits: uint64(next(50)), ignoreBits: uint64(next(masks)) << 3, idMask: ^uint64(0), idKey: uint64(next(2))}
			if next(3) == 0 {
				e.idMask, e.idKey = 0, 0
			}
			e.node.entry = e
			entries = append(entries, e)
			list.add(e)
		} else {
			i := next(len(entries))
			list.remove(entries[i])
			entries = append(entries[:i:i], entries[i+1:]...)
		}
		h := Header{NI: NIMatchingLogical, MatchBits: uint64(next(50)), Initiator: RankID(uint32(next(2)))}
		require.Same(t, walk(&h, initiatorKey(&h)), list.find(&h))
		most = max(most, len(list.classes))
	}
	return most
}
