package sim

import (
	"cmp"
	"slices"
)

// radixFrom is the number of events from which counting beats comparing.
const radixFrom = 128

// sortRanks sorts ranks, with spare as room, and returns the sorted slice and
// the other one. Ranks of one destination and source must already be in order
// of seq. Events of one time are, as they keep the order of posting.
func sortRanks(ranks, spare []rank) (sorted, other []rank) {
	if len(ranks) < radixFrom {
		slices.SortFunc(ranks, compareRanks)
		return ranks, spare
	}
	var varying uint64
	for i := range ranks {
		varying |= ranks[i].who ^ ranks[0].who
	}
	spare = slices.Grow(spare[:0], len(ranks))[:len(ranks)]
	for shift := 0; shift < 64; shift += 8 {
		if varying>>shift&0xff == 0 {
			continue
		}
		var at [256]int
		for i := range ranks {
			at[uint8(ranks[i].who>>shift)]++
		}
		sum := 0
		for d, n := range at {
			at[d] = sum
			sum += n
		}
		for i := range ranks {
			d := uint8(ranks[i].who >> shift)
			spare[at[d]] = ranks[i]
			at[d]++
		}
		ranks, spare = spare, ranks
	}
	return ranks, spare
}

func (q *queue) rankOf(e *Event) rank {
	return rank{(uint64(uint32(e.Dst))<<32 | uint64(uint32(e.Src))) ^ q.mask, e.Seq, e}
}

func compareRanks(a, b rank) int {
	if a.who != b.who {
		return cmp.Compare(a.who, b.who)
	}
	return cmp.Compare(a.seq, b.seq)
}
