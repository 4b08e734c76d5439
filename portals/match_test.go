package portals

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A list with any number of wildcards answers like a walk over its entries in
// order, also while classes are opened, filled with older entries and given up.
func TestListFindsTheFirst(t *testing.T) {
	var most int
	rapid.Check(t, func(rt *rapid.T) {
		var list entryList
		var entries []*entry
		masks := rapid.SampledFrom([]int{1, 7, 8, 9, 40, 400}).Draw(rt, "masks")
		grows := rapid.SampledFrom([]int{1, 3, 9}).Draw(rt, "grows")
		draw := rapid.SampledFrom([]uint64{1, 5, 12345, 999983}).Draw(rt, "draw")
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
		for range rapid.IntRange(1, 1500).Draw(rt, "steps") {
			switch {
			case len(entries) == 0 || next(10) < grows:
				e := &entry{matchBits: uint64(next(50)), ignoreBits: uint64(next(masks)) << 3, idMask: ^uint64(0), idKey: uint64(next(2))}
				if next(3) == 0 {
					e.idMask, e.idKey = 0, 0
				}
				e.node.entry = e
				entries = append(entries, e)
				list.add(e)
			default:
				i := next(len(entries))
				list.remove(entries[i])
				entries = append(entries[:i:i], entries[i+1:]...)
			}
			h := Header{NI: NIMatchingLogical, MatchBits: uint64(next(50)), Initiator: RankID(uint32(next(2)))}
			require.Same(rt, walk(&h, initiatorKey(&h)), list.find(&h))
			most = max(most, len(list.classes))
		}
	})
	require.Greater(t, most, 2*fewClasses)
}
