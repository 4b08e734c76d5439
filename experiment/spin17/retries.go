package spin17

import (
	"fmt"

	"github.com/spinsim/spinsim/experiment"
)

// mostlyRetries returns a caveat for results in which more than half of all
// attempts were retries. Such a result shows how clients get in each other's
// way, not how fast their work is. share returns the part of the attempts that
// were retries, 0 to 1. what names the attempts, such as "requests".
func mostlyRetries(what string, share func(*experiment.Result) float64) func(results []*experiment.Result) []string {
	return func(results []*experiment.Result) []string {
		var worst *experiment.Result
		n := 0
		for _, r := range results {
			if share(r) <= 0.5 {
				continue
			}
			if n++; worst == nil || share(r) > share(worst) {
				worst = r
			}
		}
		if worst == nil {
			return nil
		}
		return []string{fmt.Sprintf("Retries dominate in %d of %d results: most of all %v, where %.0f%% of the %s had to come again.", n, len(results), worst.Point, 100*share(worst), what)}
	}
}

// both joins two kinds of caveats.
func both(a, b func([]*experiment.Result) []string) func([]*experiment.Result) []string {
	return func(results []*experiment.Result) []string { return append(a(results), b(results)...) }
}
