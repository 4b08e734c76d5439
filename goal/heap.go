package goal

// timeHeap is a binary heap of events, the earliest first. Events of one time
// have no order of their own. ATLAHS' simulator, which this is for, leaves it to
// the heap of the C++ library of GNU, and so it is here: an event rises while its
// parent is later; what the first leaves free goes down to the bottom, among
// equal children to the right, and the last event rises from there.
type timeHeap []event

func (h *timeHeap) push(e event) {
	*h = append(double(*h, 1), e)
	h.rise(len(*h)-1, e)
}

// rise puts an event in a free place, or above it.
func (h timeHeap) rise(at int, e event) {
	for at > 0 && h[(at-1)/2].time > e.time {
		h[at] = h[(at-1)/2]
		at = (at - 1) / 2
	}
	h[at] = e
}

// pop takes the first event; there must be one.
func (h *timeHeap) pop() event {
	all := *h
	first, last := all[0], all[len(all)-1]
	all = all[:len(all)-1]
	*h = all
	if len(all) == 0 {
		return first
	}
	at := 0
	for 2*at+2 < len(all) {
		child := 2*at + 2
		if all[child].time > all[child-1].time {
			child--
		}
		all[at] = all[child]
		at = child
	}
	if child := 2*at + 1; child < len(all) {
		all[at] = all[child]
		at = child
	}
	all.rise(at, last)
	return first
}
