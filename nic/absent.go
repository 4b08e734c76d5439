package nic

import "github.com/spinsim/spinsim/host"

// absentPages are the pages for which packets of messages wait. A packet at
// which the host's memory faults looks again by itself, unless an earlier one
// of its message waits for the same page: that one looks for both. It could not
// land before it in any case (host.Order). Devices that publications describe
// note a page of a message once, too: PART's FIFO takes no entry like the last
// one (Psistakis'19 §3.2.1), and InfiniBand with page faults keeps a bit for
// each fault in flight (Lesokhin et al., ASPLOS'17 §4).
type absentPages struct {
	pages map[absentPage]*absentWait
	free  *absentWait
}

// absentPage is a page by its number in a process.
type absentPage struct {
	space  *host.AddressSpace
	number uint64
}

// absentWait is who waits for a page.
type absentWait struct {
	looks  *host.Access   // looks again
	joined []*host.Access // of later packets of its message
	next   *absentWait    // free
}

func pageOf(a *host.Access) absentPage {
	addr, _ := a.At(0)
	return absentPage{a.Space, addr / host.PageBytes}
}

// await notes that the packet of a has met an absent page. It reports whether
// another one looks for it.
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

// ended takes out what waits with a; nil: nothing. It is to be given back.
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
