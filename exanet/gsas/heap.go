package gsas

import (
	"cmp"
	"slices"
)

// heapAlign is the alignment of allocations: a word of the network.
const heapAlign = 16

// block is an allocation.
type block struct {
	at, length uint64
	barrier    *barrier // nil: memory
}

func (b *block) end() uint64 { return b.at + (b.length+heapAlign-1)/heapAlign*heapAlign }

// heap allocates parts of an address range. It takes the first fit behind the
// last allocation, so that freed memory is reused as late as possible. An
// access through a dead pointer then usually meets no allocation, and is an
// error.
type heap struct {
	start, end uint64
	blocks     []*block // by address
	next       uint64   // where the search begins: behind the last allocation
	used       uint64   // sum of the requested bytes
}

// alloc returns a block of n bytes, at least 1, or nil if none fits.
func (h *heap) alloc(n uint64) *block {
	i, at, found := h.search(n, h.next)
	if !found {
		i, at, found = h.search(n, h.start)
	}
	if !found {
		return nil
	}
	b := &block{at: at, length: n}
	h.blocks = slices.Insert(h.blocks, i, b)
	h.next = b.end()
	h.used += n
	return b
}

// search returns the first place for n bytes that begins at least or later, and
// the number of blocks before it.
func (h *heap) search(n, least uint64) (i int, at uint64, found bool) {
	i, _ = h.at(least)
	for ; i <= len(h.blocks); i++ {
		from, to := max(h.start, least), h.end
		if i > 0 {
			from = max(from, h.blocks[i-1].end())
		}
		if i < len(h.blocks) {
			to = h.blocks[i].at
		}
		if from <= to && n <= to-from {
			return i, from, true
		}
	}
	return 0, 0, false
}

// at returns the index of the block at an address. If none begins there, it is
// the index of the next one.
func (h *heap) at(addr uint64) (int, bool) {
	return slices.BinarySearchFunc(h.blocks, addr, func(b *block, addr uint64) int { return cmp.Compare(b.at, addr) })
}

// free frees the block that begins at addr. It returns nil if none does.
func (h *heap) free(addr uint64) *block {
	i, found := h.at(addr)
	if !found {
		return nil
	}
	b := h.blocks[i]
	h.blocks = slices.Delete(h.blocks, i, i+1)
	h.used -= b.length
	return b
}

// find returns the block that contains an address, or nil.
func (h *heap) find(addr uint64) *block {
	i, found := h.at(addr)
	if !found {
		i--
	}
	if i < 0 || addr-h.blocks[i].at >= h.blocks[i].length {
		return nil
	}
	return h.blocks[i]
}
