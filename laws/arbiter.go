package laws

import "github.com/spinsim/spinsim/spin"

// WLBVT is the arbiter of OSMOSIS (arXiv 2309.03628): the key is the HPUs that a
// tenant has had on average while it wanted some, in 1e-9, divided by its weight.
// It may have no more handlers under way than its part of the HPUs, rounded up.
func WLBVT(t *spin.Tenant) {
	if t.Handlers*t.Others >= t.HPUs*t.Weight {
		t.Key = spin.NotNow
		return
	}
	t.Key = uint64(1e9 * float64(t.Had) / float64(max(t.Wanted, 1)) / float64(t.Weight))
}
