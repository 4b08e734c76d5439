package nic

import "github.com/spinsim/spinsim/host"

// absentPages are the pages that packets of messages wait for. A packet that
// meets a page fault tries again after a pause. If an earlier packet of its
// message already waits for the same page, only the earlier one tries: the
// later one could not land before it (host.Order). Published devices also note
// a page of a message once. PART's FIFO takes no entry equal to the last one
// (Psistakis'19 §3.2.1). InfiniBand with page faults keeps a bit for each fault
// in flight (Lesokhin et al., ASPLOS'17 §4).
type absentPages struct {
	pages map[absentPage]*absentWait
	free  *absentWait
}

// absentPage is a page of a process, by its number.
type absentPage struct {
	space  *host.AddressSpace
	number uint64
}

// absentWait is the packets that wait for one page.
type absentWait struct {
	looks  *host.Access   // the access that tries again
	joined []*host.Access // accesses of later packets of its message
	next   *absentWait    // in the free list
}

func pageOf(a *host.Access) absentPage {
	addr, _ := a.At(0)
	return absentPage{a.Space, addr / host.PageBytes}
}

// await notes that the packet of access a has met an absent page. It reports
// whether an earlier access already tries again for that page.
func (p *absentPages) await(a *host.Access) (joined bool) {
	at := pageOf(a)
	switch w := p.pages[at]; {
	case w == nil:
		p.begin(at, a)
	case w.looks != a && w.looks.Ref == a.Ref && w.looks.Serial < a.Serial:
		w.joined = append(w.joined, a)
		return true
	}
	return false
}

func (p *absentPages) begin(at absentPage, a *host.Access) {
	w := p.free
	if w == nil {
		w = &absentWait{}
	} else {
		p.free = w.next
	}
	if p.pages == nil {
		p.pages = map[absentPage]*absentWait{}
	}
	w.looks, w.next, p.pages[at] = a, nil, w
	a.Begin = true
}

// ended removes and returns the packets that wait with a; nil: there are none.
// The caller gives the result back.
func (p *absentPages) ended(a *host.Access) *absentWait {
	at := pageOf(a)
	w := p.pages[at]
	if w == nil || w.looks != a {
		return nil
	}
	delete(p.pages, at)
	return w
}

func (p *absentPages) give(w *absentWait) {
	clear(w.joined)
	w.looks, w.joined = nil, w.joined[:0]
	w.next, p.free = p.free, w
}
