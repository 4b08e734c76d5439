package host

import "github.com/spinsim/spinsim/sim"

// Notifier receives the changes of a process's tables. It is for software that
// keeps copies of the translations, such as the driver of an SMMU
// (mmu_notifier).
type Notifier interface {
	// InvalidateRange is called at the moment the entries from start to end
	// change: copies of them must not be used any more. tables: the higher tables
	// may have changed, too. Pages that appear where there were none are not
	// reported.
	InvalidateRange(start, end uint64, tables bool)
	// Sync returns when every access with an old translation has ended. Only then
	// are pages freed. t may wait.
	Sync(t *Thread)
}

// Register makes n receive all changes from now on.
func (p *Process) Register(n Notifier) { p.notifiers = append(p.notifiers, n) }

// Unregister ends Register.
func (p *Process) Unregister(n Notifier) {
	for i, o := range p.notifiers {
		if o == n {
			p.notifiers = append(p.notifiers[:i:i], p.notifiers[i+1:]...)
			return
		}
	}
}

// invalidate reports to the notifiers that entries have changed now.
func (p *Process) invalidate(start, end uint64, tables bool) {
	for _, n := range p.notifiers {
		n.InvalidateRange(start, end, tables)
	}
}

// drain pays for the reported ranges and waits until no device uses the old
// pages. Without a thread there are no devices yet.
func (p *Process) drain(t *Thread, ranges int) {
	if t == nil {
		p.expelled = 0
		return
	}
	if p.splits > 0 {
		n := p.splits
		p.splits = 0
		run(t, p.kernel.spec.SplitHuge*sim.Time(n), "split")
	}
	if p.kernel.spec.ownTables() { // a range that devices did not have costs nothing (NPF'17 §4)
		ranges, p.expelled = min(ranges, p.expelled), 0
	}
	if len(p.notifiers) == 0 {
		return
	}
	run(t, p.kernel.spec.Invalidate*sim.Time(ranges), "invalidate")
	run(t, p.kernel.spec.Acknowledge*sim.Time(ranges), "acknowledgement")
	for _, n := range p.notifiers {
		n.Sync(t)
	}
}
