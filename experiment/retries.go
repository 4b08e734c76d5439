package experiment

import "fmt"

// mostlyRetries says which results are those of what had to be tried again: more often than not. share is that part of what was tried, 0 to 1; what says what
// was tried, in the plural. Such a result measures how much clients are in each other's way, and no latency or rate of what they do.
func mostlyRetries(what string, share func(*Result) float64) func(results []*Result) []string {
	return func(results []*Result) []string {
		var worst *Result
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

// both are the caveats of two kinds.
func both(a, b func([]*Result) []string) func([]*Result) []string {
	return func(results []*Result) []string { return append(a(results), b(results)...) }
}
