package gsas

// Unhold makes homes serve every request at once, even if it overlaps one under
// way.
func (s *Space) Unhold() { s.unheld = true }

// Heap is the allocator alone.
type Heap struct{ h heap }

// NewHeap makes a heap from an address range.
func NewHeap(start, end uint64) *Heap { return &Heap{heap{start: start, end: end}} }

// Alloc returns the address of n bytes.
func (h *Heap) Alloc(n uint64) (uint64, bool) {
	b := h.h.alloc(n)
	if b == nil {
		return 0, false
	}
	return b.at, true
}

// Free frees an allocation.
func (h *Heap) Free(at uint64) bool { return h.h.free(at) != nil }

// Find returns the allocation that contains an address.
func (h *Heap) Find(at uint64) (start, n uint64, found bool) {
	if b := h.h.find(at); b != nil {
		return b.at, b.length, true
	}
	return 0, 0, false
}

// Used returns the sum of the lengths.
func (h *Heap) Used() uint64 { return h.h.used }
