package scenario

import (
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/sim"
)

// wholeRun is the interval of a run without measurements.
const wholeRun = "the whole run"

// breakdownRow begins a row; the parts follow.
type breakdownRow struct {
	Rank     int      `column:"rank" help:"Rank."`
	Interval string   `column:"interval" help:"Name of the measurement; the whole run, to the end of the last program, if the scenario measures nothing."`
	Samples  int      `column:"samples" help:"How often it was measured."`
	Mean     sim.Time `column:"mean" scale:"breakdown" help:"Mean of all samples, to the picosecond below, to which the columns behind it add up."`
}

// breakdownRows shows how the time of each measurement was spent.
func (r *run) breakdownRows() (rows experiment.Rows) {
	add := func(rank int, name string, all []measured) {
		times := meanOf(r.followed, rank, r.states[rank].Name(), all)
		row := []any{rank, name, len(all), times.Sum()}
		for _, d := range times {
			row = append(row, d)
		}
		rows = append(rows, row)
	}
	for rank := range r.states {
		for _, l := range r.states[rank].latencies {
			add(rank, l.name, l.measured)
		}
	}
	if len(rows) == 0 {
		last := 0
		for rank := range r.states {
			if r.states[rank].ended > r.states[last].ended {
				last = rank
			}
		}
		add(last, wholeRun, []measured{{0, r.states[last].ended, 1}})
	}
	return rows
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
