package allreduce_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/allreduce"
)

// What lies behind the state has the sizes that the handler reckons with.
func TestSizes(t *testing.T) {
	require.EqualValues(t, allreduce.SlotHead, unsafe.Sizeof(allreduce.Slot{}))
	require.EqualValues(t, 56, unsafe.Sizeof(allreduce.Descriptor{}))
	require.EqualValues(t, 8, unsafe.Sizeof(allreduce.Entry{}))
	s := allreduce.State{Levels: 3, Block: 256}
	require.EqualValues(t, allreduce.SlotHead+4*256, s.SlotBytes())
}

// set is which ranks' vectors there are in what a module has, and how often.
type set map[int]int

// meets has modules take the steps of a run of a block as far as they can, one
// after the other, and returns what each has at the end.
func meets(t *testing.T, algorithm, ranks, block uint32) []set {
	modules := make([]allreduce.State, ranks)
	has := make([]set, ranks)
	next, end := make([]uint16, ranks), make([]uint16, ranks)
	levels := make([]map[uint32]set, ranks)
	for r := range modules {
		s := &modules[r]
		s.Levels = allreduce.LevelsOf(algorithm, ranks)
		s.Call = allreduce.Descriptor{Rank: uint32(r), Ranks: ranks, Algorithm: algorithm, Bytes: 4, Op: allreduce.Sum, Type: allreduce.Int32}
		require.True(t, s.Legal(&s.Call))
		s.Plan()
		has[r], levels[r] = set{r: 1}, map[uint32]set{}
		next[r], end[r] = s.Span(block)
	}
	for moved := true; moved; {
		moved = false
		for r := range modules {
			for next[r] < end[r] {
				p := modules[r].Program[next[r]]
				require.Less(t, p.Level(), modules[r].Levels)
				if p.Do() == allreduce.Send {
					to := modules[r].Expected[p.Peer()]
					require.NotContains(t, levels[to], p.Level(), "%d ranks: two vectors for level %d of rank %d", ranks, p.Level(), to)
					sent := set{}
					for k, n := range has[r] {
						sent[k] = n
					}
					levels[to][p.Level()] = sent
				} else {
					got, came := levels[r][p.Level()]
					if !came {
						break
					}
					if p.Do() == allreduce.Take {
						has[r] = set{}
					}
					for k, n := range got {
						has[r][k] += n
					}
				}
				next[r]++
				moved = true
			}
		}
	}
	for r := range modules {
		require.Equal(t, end[r], next[r], "%d ranks, algorithm %d: rank %d waits for ever", ranks, algorithm, r)
	}
	return has
}

// With every algorithm and number of ranks every module ends with the vector of
// each rank, once; nothing comes twice to a level, and nobody waits for ever.
func TestEveryRankOnce(t *testing.T) {
	for _, algorithm := range []uint32{allreduce.Boards, allreduce.Doubling, allreduce.Ring} {
		for ranks := uint32(1); ranks <= 41; ranks++ {
			if algorithm == allreduce.Boards && ranks%allreduce.Board != 0 {
				continue
			}
			blocks := []uint32{0}
			if algorithm == allreduce.Ring {
				blocks = []uint32{0, ranks / 2, ranks - 1, ranks}
			}
			for _, block := range blocks {
				for r, has := range meets(t, algorithm, ranks, block) {
					once := len(has) == int(ranks)
					for _, n := range has {
						once = once && n == 1
					}
					require.True(t, once, "rank %d of %d has %v", r, ranks, has)
				}
			}
		}
	}
	require.Len(t, meets(t, allreduce.Boards, 204, 0)[203], 204)
	require.LessOrEqual(t, allreduce.LevelsOf(allreduce.Doubling, 1<<allreduce.NodeBits), uint32(allreduce.MaxLevels))
	require.LessOrEqual(t, allreduce.LevelsOf(allreduce.Boards, 1<<allreduce.NodeBits), uint32(allreduce.MaxLevels))
}

// With 16 ranks (TR-488, Figure 10) servers swap at distances 4 and 8.
func TestDistances(t *testing.T) {
	var s allreduce.State
	s.Call = allreduce.Descriptor{Rank: 4, Ranks: 16, Algorithm: allreduce.Boards}
	s.Plan()
	require.Equal(t, []uint32{0, 12, 5, 6, 7}, s.Expected[:s.Links])
	s.Call.Rank = 6
	s.Plan()
	require.Equal(t, []uint32{4}, s.Expected[:s.Links])
}
