package host

import "github.com/spinsim/spinsim/sim"

// Notifier is told of changes of a process's tables by whoever keeps
// translations of them: the driver of an SMMU (mmu_notifier).
type Notifier interface {
	// InvalidateRange is told at the moment at which the entries of the
	// addresses from start to end have changed: what a device has kept of them
	// must not be used any more. tables says that the way there may have
	// changed, too. Pages that come where there were none are not told.
	InvalidateRange(start, end uint64, tables bool)
	// Sync returns when no device does an access any more whose translation it
	// had before. Only then are pages given away. t may wait.
	Sync(t *Thread)
}

// Register has n told of all changes from now on.
func (p *Process) Register(n Notifier) { p.notifiers = append(p.notifiers, n) }

// Unregister ends that.
func (p *Process) Unregister(n Notifier) {
	for i, o := range p.notifiers {
		if o == n {
			p.notifiers = append(p.notifiers[:i:i], p.notifiers[i+1:]...)
			return
		}
	}
}

// invalidate tells that entries have changed, at this moment.
func (p *Process) invalidate(start, end uint64, tables bool) {
	for _, n := range p.notifiers {
		n.InvalidateRange(start, end, tables)
	}
}

// drain pays for ranges that have been told, and waits until no device uses
// what was there. Without a thread there are no devices yet.
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
	if p.kernel.spec.ownTables() { // a range of which they had nothing costs nothing (NPF'17 §4)
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
