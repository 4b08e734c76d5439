package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// What tables of ExaNeSt say first, where no column is the base of another.

// ipAnswer says what services carry beside the Ethernet, with the largest packets and numbers of streams that were measured.
func ipAnswer(results []*Result) (lines []string) {
	if !apart(results, "over", "traffic", "mtu", "streams") {
		return nil
	}
	for _, traffic := range ipTraffics() {
		most := &Result{}
		var parts []string
		for _, r := range results {
			p := r.Point
			if p.Text("traffic") != traffic {
				continue
			}
			if q := most.Point; q == nil || p.Int("mtu") > q.Int("mtu") || p.Int("mtu") == q.Int("mtu") && p.Int("streams") > q.Int("streams") {
				most, parts = r, nil
			}
			if q := most.Point; p.Int("mtu") != q.Int("mtu") || p.Int("streams") != q.Int("streams") {
				continue
			}
			if traffic == ipRTT {
				parts = append(parts, fmt.Sprintf("%s %s", p.Text("over"), short(r.Time("round_trip"))))
			} else {
				parts = append(parts, fmt.Sprintf("%s %.2f Gb/s", p.Text("over"), r.Float("throughput")))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("%s, packets of %d B, %s: %s.", traffic, most.Point.Int("mtu"), counted(most.Point.Int("streams"), "stream"), strings.Join(parts, ", ")))
		}
	}
	return lines
}

// scalingAnswer says how efficient the most ranks are that were measured.
func scalingAnswer(results []*Result) (lines []string) {
	if !apart(results, "app", "scaling", "ranks") {
		return nil
	}
	most := 0
	for _, r := range results {
		most = max(most, r.Point.Int("ranks"))
	}
	for _, how := range []string{"weak", "strong"} {
		var parts []string
		for _, r := range results {
			if r.Point.Int("ranks") == most && r.Point.Text("scaling") == how {
				parts = append(parts, fmt.Sprintf("%s %.1f%%", r.Point.Text("app"), 100*r.Float("efficiency")))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("Efficiency of %s, %s: %s.", counted(most, "rank"), how, strings.Join(parts, ", ")))
		}
	}
	return lines
}

// creditsAnswer says what the other buffers make of each program, beside those of 4 KiB.
func creditsAnswer(results []*Result) (lines []string) {
	if !apart(results, "buffer", "benchmark", "ranks", "size") {
		return nil
	}
	for _, r := range results {
		p := r.Point
		base := slices.IndexFunc(results, func(b *Result) bool {
			q := b.Point
			return q.Int("buffer") == 4<<10 && q.Text("benchmark") == p.Text("benchmark") && q.Int("ranks") == p.Int("ranks") && q.Int("size") == p.Int("size")
		})
		if base < 0 || results[base] == r {
			continue
		}
		var what string
		var change float64
		if r.Values[latencyColumn] != nil {
			what, change = "takes", float64(r.Time(latencyColumn))/float64(results[base].Time(latencyColumn))-1
		} else {
			what, change = "carries", r.Float("bandwidth")/results[base].Float("bandwidth")-1
		}
		lines = append(lines, fmt.Sprintf("%s, %s, %s: with buffers of %s it %s %.1f%% %s than with 4 KiB.", p.Text("benchmark"), counted(p.Int("ranks"), "rank"),
			sim.Size(p.Int("size")), sim.Size(p.Int("buffer")), what, 100*max(change, -change), map[bool]string{true: "less", false: "more"}[change < 0]))
	}
	return lines
}

// apart reports whether axes tell all results apart, so that a sentence that names their values alone means one of them.
func apart(results []*Result, axes ...string) bool {
	seen := make(map[string]bool)
	for _, r := range results {
		key := ""
		for _, a := range axes {
			key += fmt.Sprint(r.Point.Value(a), "\x00")
		}
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
