package spin17

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// collectivesTable is the table of the collectives that a schedule names.
const collectivesTable = "collectives"

// mostShown is how many collectives people see without asking.
const mostShown = 50

// collectivesDetail describes the table. Times are of a kind, in ns.
func collectivesDetail(s *goal.Schedule, times report.Kind) experiment.Detail {
	return experiment.Detail{
		Name: collectivesTable, Title: "collectives", Quiet: s != nil && len(s.Collectives()) > mostShown,
		Columns: []report.Column{
			{Name: "collective", Help: "its name in the schedule"},
			{Name: "kind", Help: "what it does"},
			{Name: "bytes", Kind: report.Size, Help: "what a member contributes"},
			{Name: "members", Kind: report.Count, Help: "ranks with operations of it"},
			{Name: "sends", Kind: report.Count, Help: "its messages"},
			{Name: "sent", Kind: report.Size, Help: "bytes of its messages"},
			{Name: "start", Unit: "ns", Kind: times, Help: "when the first member begins"},
			{Name: "end", Unit: "ns", Kind: times, Help: "when the last member has ended"},
			{Name: "time", Unit: "ns", Kind: times, Help: "between these two"},
			{Name: "share", Kind: report.Share, Help: "of the time of the run; collectives may overlap"},
		},
	}
}

// window is the time of a collective in a run, in a unit of its own.
type window struct{ start, end int64 }

// collectiveRows are the rows of the table. written makes a value of a time.
func collectiveRows(s *goal.Schedule, windows []window, whole int64, written func(int64) any) experiment.Rows {
	var rows experiment.Rows
	contents := s.Contents()
	for i, c := range s.Collectives() {
		w, of := windows[i], contents[i]
		rows = append(rows, []any{
			c.Name, string(c.Kind), saturated(c.Bytes), of.Ranks, of.Messages, saturated(of.Bytes),
			written(w.start), written(w.end), written(w.end - w.start), share(w.end-w.start, whole),
		})
	}
	return rows
}

func share(part, whole int64) any {
	if whole == 0 {
		return nil
	}
	return float64(part) / float64(whole)
}

// underWay is the time in which at least one of some collectives is under way.
func underWay(windows []window) (sum int64) {
	end := int64(0)
	for _, w := range slices.SortedFunc(slices.Values(windows), func(a, b window) int { return cmp.Compare(a.start, b.start) }) {
		if from := max(w.start, end); w.end > from {
			sum += w.end - from
			end = w.end
		}
	}
	return sum
}

// collectiveCaveats say which share of each run its collectives take, and compare
// what does them. axes tell runs apart, the first one by that; of runs with other
// differences there are no sentences.
func collectiveCaveats(axes ...string) func(results []*experiment.Result) []string {
	return func(results []*experiment.Result) (lines []string) {
		if !experiment.Apart(results, axes...) {
			return nil
		}
		for _, r := range results {
			rows, _ := r.Values[collectivesTable].(experiment.Rows)
			if len(rows) == 0 || len(rows) == 1 && len(results) > 1 {
				continue // the table has as much
			}
			line := "Collectives"
			if len(results) > 1 {
				line = valuesOf(r, axes) + ": collectives"
			}
			lines = append(lines, line+collectiveShares(rows, inUnits(r.Values["max"])))
		}
		return append(comparedSwaps(results, axes), lines...)
	}
}

// valuesOf writes the values of some axes.
func valuesOf(r *experiment.Result, axes []string) string {
	var at []string
	for _, axis := range axes {
		at = append(at, fmt.Sprint(r.Point.Value(axis)))
	}
	return strings.Join(at, ", ")
}

// comparedSwaps compares runs that differ in the first axis alone with the first of
// them.
func comparedSwaps(results []*experiment.Result, axes []string) (lines []string) {
	library, others := false, false
	for i, r := range results {
		at := valuesOf(r, axes[1:])
		first := slices.IndexFunc(results, func(o *experiment.Result) bool { return valuesOf(o, axes[1:]) == at })
		byLibrary := slices.ContainsFunc(mpi.AllreduceChoices(), func(m mpi.Mode) bool {
			return strings.Contains(r.Point.Text(axes[0])+"+", "="+string(m)+"+")
		})
		library, others = library || byLibrary, others || !byLibrary
		if whole := inUnits(results[first].Values["max"]); first < i && whole > 0 {
			lines = append(lines, fmt.Sprintf("%s takes %.2f times as long as %s.", valuesOf(r, axes),
				float64(inUnits(r.Values["max"]))/float64(whole), results[first].Point.Text(axes[0])))
		}
	}
	if library && others {
		lines = append(lines, "The library adds on cores, in NICs or in switches, and copies; the messages of a schedule are added in no time without computations, as by reduce=NS.")
	}
	return lines
}

// collectiveShares says how much of a run collectives take, by kind.
func collectiveShares(rows experiment.Rows, whole int64) string {
	all, longest := []window(nil), rows[0]
	kinds := make(map[string][]window)
	var order []string
	for _, row := range rows {
		w, kind := window{inUnits(row[6]), inUnits(row[7])}, row[1].(string)
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		all, kinds[kind] = append(all, w), append(kinds[kind], w)
		if inUnits(row[8]) > inUnits(longest[8]) {
			longest = row
		}
	}
	for i, kind := range order {
		order[i] = fmt.Sprintf("%s %s", kind, percent(underWay(kinds[kind]), whole))
	}
	return fmt.Sprintf(" are under way in %s of the run (%s); the longest is %s, %s.",
		percent(underWay(all), whole), strings.Join(order, ", "), longest[0], percent(inUnits(longest[8]), whole))
}

// inUnits is a time of a run, in a unit that the run has for all.
func inUnits(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case sim.Time:
		return int64(v)
	}
	return 0
}

// saturated is a size as tables hold it: more than they hold is what they hold at
// most.
func saturated(n uint64) int64 { return int64(min(n, math.MaxInt64)) } //nolint:gosec // it fits

func percent(part, whole int64) string {
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(max(whole, 1)))
}
