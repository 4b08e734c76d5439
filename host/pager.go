package host

import "fmt"

// pager is the memory of a process, page by page (mm_struct): it provides pages
// at faults, copies them on write, and takes them away. It is the page table of
// the AddressSpace.
type pager struct {
	kernel   *Kernel
	name     string // of the process
	space    *AddressSpace
	tables   Tables
	mappings mappings
	lock     Mutex   // protects mappings
	resident int     // entries with a page, own or shared
	held     []frame // by the fault being resolved
	gone     bool    // the process has ended
}

// begin takes the lock for a call that makes mappings. After an error the lock
// is not taken.
func (p *pager) begin(t *Thread, what string) error {
	p.lock.Lock(t, mmapLock)
	if p.gone {
		p.lock.Unlock(t)
		return fmt.Errorf("process %s: %s: %w", p.name, what, ErrGone)
	}
	return nil
}

// calm waits until no page is in transfer.
func (p *pager) calm(t *Thread, start, end uint64) error {
	for busy := true; busy; {
		busy = false
		var at frame
		p.tables.each(start, end, func(_ uint64, e pte) {
			if e.flags&pteBusy != 0 {
				busy, at = true, e.frame
			}
		})
		if busy {
			if err := p.kernel.memory.page(at).wait(t, "a page that is moved"); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop removes pages and addresses.
func (p *pager) drop(t *Thread, start, end uint64) {
	var frames []frame
	p.tables.each(start, end, func(va uint64, e pte) {
		p.kernel.stats.Unmapped++
		if p.clear(va, e) {
			p.kernel.memory.page(e.frame).inHand = true
			frames = append(frames, e.frame)
		}
	})
	for _, base := range p.tables.bases(start, end) {
		p.tables.prune(p.tables.regions[base>>hugeBits])
	}
	files := p.mappings.cut(start, end)
	p.tables.invalidate(start, end, true)
	p.tables.drain(t, 1)
	p.space.forget(start, end)
	for _, f := range frames {
		p.kernel.putBack(f)
	}
	for _, f := range files {
		f.release(t)
	}
}
