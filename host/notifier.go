package host

import (
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

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
func (pt *Tables) Register(n Notifier) { pt.notifiers = append(pt.notifiers, n) }

// Unregister ends Register.
func (pt *Tables) Unregister(n Notifier) {
	for i, o := range pt.notifiers {
		if o == n {
			pt.notifiers = append(pt.notifiers[:i:i], pt.notifiers[i+1:]...)
			return
		}
	}
}

// invalidate reports to the notifiers that entries have changed now.
func (pt *Tables) invalidate(start, end uint64, tables bool) {
	for _, n := range pt.notifiers {
		n.InvalidateRange(start, end, tables)
	}
}

// drain pays for the reported ranges and waits until no device uses the old
// pages. Without a thread there are no devices yet.
func (pt *Tables) drain(t *Thread, ranges int) {
	if t == nil {
		pt.expelled = 0
		return
	}
	if pt.splits > 0 {
		n := pt.splits
		pt.splits = 0
		run(t, pt.spec.SplitHuge*sim.Time(n), "split")
	}
	if pt.spec.ownTables() { // a range that devices did not have costs nothing (NPF'17 §4)
		ranges, pt.expelled = min(ranges, pt.expelled), 0
	}
	if len(pt.notifiers) == 0 {
		return
	}
	t.cpu.Use(used.Invalidation)
	run(t, pt.spec.Invalidate*sim.Time(ranges), "invalidate")
	run(t, pt.spec.Acknowledge*sim.Time(ranges), "acknowledgement")
	for _, n := range pt.notifiers {
		n.Sync(t)
	}
}
