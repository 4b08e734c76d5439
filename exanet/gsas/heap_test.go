package gsas_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/exanet/gsas"
)

// heapAlign is the alignment of allocations.
const heapAlign = 16

// modelled is a heap and the model to compare it with.
type modelled struct {
	*gsas.Heap
	start uint64
	owner []uint64          // of each byte: the address of its allocation, padding included; 0: free
	live  map[uint64]uint64 // lengths
	order []uint64
}

// The heap against a map from bytes to allocations. No two allocations overlap,
// and all lie in the heap. Free memory in one piece can be allocated. Every
// address leads to its allocation.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := uint64(rapid.IntRange(1, 1<<20).Draw(t, "start")) * heapAlign
		size := uint64(rapid.IntRange(1, 600).Draw(t, "size"))
		m := &modelled{Heap: gsas.NewHeap(start, start+size), start: start, owner: make([]uint64, size), live: map[uint64]uint64{}}
		t.Repeat(map[string]func(*rapid.T){"alloc": m.alloc, "free": m.free, "": m.same})
	})
}

// longest returns the size of the largest free piece.
func (m *modelled) longest() (n uint64) {
	run := uint64(0)
	for i := range m.owner {
		run++
		if m.owner[i] != 0 || run == 1 && (m.start+uint64(i))%heapAlign != 0 {
			run = 0
		}
		n = max(n, run)
	}
	return n
}

func (m *modelled) alloc(t *rapid.T) {
	n, longest := uint64(rapid.IntRange(1, 200).Draw(t, "n")), m.longest()
	at, ok := m.Alloc(n)
	require.Equal(t, longest >= n, ok, "%d of %d", n, longest)
	if !ok {
		return
	}
	end := m.start + uint64(len(m.owner))
	require.Zero(t, at%heapAlign)
	require.GreaterOrEqual(t, at, m.start)
	require.LessOrEqual(t, at+n, end)
	for a := at; a < min(at+(n+heapAlign-1)/heapAlign*heapAlign, end); a++ {
		require.Zero(t, m.owner[a-m.start], "it was free")
		m.owner[a-m.start] = at
	}
	m.live[at] = n
	m.order = append(m.order, at)
}

func (m *modelled) free(t *rapid.T) {
	at := m.start + uint64(rapid.IntRange(0, len(m.owner)-1).Draw(t, "at"))
	if len(m.order) > 0 && rapid.Bool().Draw(t, "one that lives, or has lived") {
		at = m.order[rapid.IntRange(0, len(m.order)-1).Draw(t, "which")]
	}
	_, lives := m.live[at]
	require.Equal(t, lives, m.Free(at))
	if !lives {
		return
	}
	delete(m.live, at)
	for i := range m.owner {
		if m.owner[i] == at {
			m.owner[i] = 0
		}
	}
}

func (m *modelled) same(t *rapid.T) {
	used := uint64(0)
	for _, n := range m.live { //lint:maporder the sum does not depend on the order
		used += n
	}
	require.Equal(t, used, m.Used())
	end := m.start + uint64(len(m.owner))
	for a := m.start; a < end; a++ {
		at, n, found := m.Find(a)
		o := m.owner[a-m.start]
		require.Equal(t, o != 0 && a < o+m.live[o], found)
		if found {
			require.Equal(t, []uint64{o, m.live[o]}, []uint64{at, n})
		}
	}
	for _, a := range []uint64{m.start - 1, end} {
		_, _, found := m.Find(a)
		require.False(t, found)
	}
}

// Freed memory is reused as late as possible.
func TestHeapUsesFreedMemoryLate(t *testing.T) {
	h := gsas.NewHeap(16, 16+16*10)
	for i := range uint64(10) {
		at, ok := h.Alloc(16)
		require.True(t, ok)
		require.Equal(t, 16+16*i, at)
		if i < 9 {
			require.True(t, h.Free(at))
		}
	}
	_, _, found := h.Find(16)
	require.False(t, found)
	at, ok := h.Alloc(32)
	require.True(t, ok)
	require.EqualValues(t, 16, at)
}
