package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/osu"
	"github.com/spinsim/spinsim/sim"
)

// print writes results as the OSU micro-benchmarks do. There is an output for
// each path or number of ranks, with its origin before the header.
func (f *osuFlags) print(out io.Writer, s *experiment.Sweep, results []*experiment.Result) error {
	axis := "ranks"
	if f.benchmark.Kind == osu.Pair {
		axis = "path"
	}
	first := true
	for _, v := range s.Values(axis) {
		if !slices.ContainsFunc(results, func(r *experiment.Result) bool { return r.Point.Value(axis) == v }) {
			continue // the run ended before
		}
		if !first {
			fmt.Fprintln(out)
		}
		first = false
		fmt.Fprintf(out, "# %s\n# %s\n", strings.Join(append(s.Record().Lines(), s.Record().UnusedNotes()...), "\n# "), f.describe(s, results[0].Point, v))
		l := osu.Layout{Style: osu.Style(f.like), Full: f.full, Window: f.window}
		if ranks, ok := v.(int); ok {
			l.Pairs = ranks / 2
		}
		if err := f.benchmark.WriteHeader(out, l); err != nil {
			return err
		}
		for _, r := range results {
			if r.Point.Value(axis) != v {
				continue
			}
			row := osuRow(r)
			if err := f.benchmark.WriteRow(out, l, &row); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe returns where the ranks of an output are, and what carries their
// messages.
func (f *osuFlags) describe(s *experiment.Sweep, p *experiment.Point, v any) string {
	over := fmt.Sprintf("transport %v", s.Values("transport")[0])
	if path, ok := v.(string); ok {
		if q, boards := p.Profile.Fabric.QFDBs(); boards {
			src, dst, _ := p.Profile.Fabric.Path(path)
			path += fmt.Sprintf(" (%s to %s)", q.Name(src), q.Name(dst))
		}
		return "path " + path + ", " + over
	}
	if f.benchmark.Kind == osu.Collective {
		over += fmt.Sprintf(", algorithms %v", s.Values("algorithms")[0])
	}
	return fmt.Sprintf("%v ranks, %v on a node, %s", v, s.Values("ranks-per-node")[0], over)
}

// osuRow converts a result of exanest.OSU or OSURanks into a row of the output.
func osuRow(r *experiment.Result) (row osu.Row) {
	row.Bytes, row.Iterations = r.Point.Int("size"), r.Point.Int("iterations")
	if row.Iterations == 0 {
		ranks := 2
		if r.Point.Experiment().Axis("ranks") != nil {
			ranks = r.Point.Int("ranks")
		}
		row.Iterations = osu.DefaultIterations(row.Bytes, ranks)
	}
	row.Latency, _ = r.Values[experiment.LatencyColumn].(sim.Time)
	row.Least, _ = r.Values["least"].(sim.Time)
	row.Most, _ = r.Values["most"].(sim.Time)
	row.Bandwidth, _ = r.Values["bandwidth"].(float64)
	row.MessageRate, _ = r.Values["message_rate"].(float64)
	return row
}
