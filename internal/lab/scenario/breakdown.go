package scenario

import (
	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/report"
)

// wholeRun is the interval of a run without measurements.
const wholeRun = "the whole run"

func breakdownColumns() []report.Column {
	columns := []report.Column{
		{Name: "rank", Kind: report.Count, Help: "Rank."},
		{Name: "interval", Kind: report.Text, Help: "Name of the measurement; " + wholeRun + ", to the end of the last program, if the scenario measures nothing."},
		{Name: "samples", Kind: report.Count, Help: "How often it was measured."},
		{Name: "mean", Unit: "ns", Kind: report.Duration, Scale: "breakdown", Help: "Mean of all samples, to the picosecond below, to which the columns behind it add up."},
	}
	for p := range breakdown.Parts {
		columns = append(columns, report.Column{
			Name: "in_" + p.String(), Unit: "ns", Kind: report.Duration, Scale: "breakdown", Help: "The part of the mean in which this happened on the way to its end: " + p.Help() + ".",
		})
	}
	return columns
}

// breakdownTable shows how the time of each measurement was spent.
func (r *run) breakdownTable() *report.Table {
	t := report.New(breakdownColumns()...)
	add := func(rank int, name string, all []measured) {
		times := meanOf(r.followed, rank, r.states[rank].Name(), all)
		row := []any{rank, name, len(all), times.Sum()}
		for _, d := range times {
			row = append(row, d)
		}
		t.Add(row...)
	}
	for rank := range r.states {
		for _, l := range r.states[rank].latencies {
			add(rank, l.name, l.measured)
		}
	}
	if t.Len() == 0 {
		last := 0
		for rank := range r.states {
			if r.states[rank].ended > r.states[last].ended {
				last = rank
			}
		}
		add(last, wholeRun, []measured{{0, r.states[last].ended, 1}})
	}
	return t
}

// meanOf divides the time of the measurements at a rank into parts. Each sample
// is divided as the scenario does; then comes the mean. So the parts add up to
// the mean of the measurement.
func meanOf(f *breakdown.Record, rank int, process string, all []measured) (times breakdown.Times) {
	for _, m := range all {
		var one breakdown.Times
		f.Path(&one, rank, process, m.from, m.to)
		one.Divide(m.divide)
		times.Add(&one)
	}
	times.Divide(max(len(all), 1))
	return times
}
