package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The answers of tables and plots of ExaNeSt agree with their rows. Plots have
// a line for each value of the series, and their axes have names and units.
func TestAnswersAndPictures(t *testing.T) {
	for _, x := range []struct {
		e       *Experiment
		preset  string
		set     []string
		choices []string
		says    []string // of each answer: text, followed by columns of rows
		drawn   []string
	}{
		{builtin("ip"), "", nil, []string{"size", "16KiB", "rounds", "2", "mtu", "1500,9000", "streams", "1"}, []string{
			"tcp, packets of 9000 B, 1 stream: polling ", "udp, packets of 9000 B, 1 stream: polling ", "rtt, packets of 1500 B, 1 stream: polling ",
		}, []string{"polling", "sleeping", "ethernet", "throughput (Gbps)", "mtu"}},
		{builtin("scaling"), "", nil, []string{"ranks", "1,8", "app", "minife,lammps"}, []string{
			"Efficiency of 8 ranks, weak: minife 99", "Efficiency of 8 ranks, strong: minife 98",
		}, []string{"minife", "lammps", "efficiency", "ranks", "weak", "strong"}},
		{builtin("credits"), "", []string{"fabric.dims=[2,1,1]"}, []string{"ranks", "8", "size", "4KiB"}, []string{
			"alltoall, 8 ranks, 4 KiB: with buffers of 1 KiB it takes ", "alltoall, 8 ranks, 4 KiB: with buffers of 16 KiB it takes ",
			"mbw_mr, 8 ranks, 4 KiB: with buffers of 1 KiB it carries ", "mbw_mr, 8 ranks, 4 KiB: with buffers of 16 KiB it carries ",
		}, []string{"alltoall", "latency (", "buffer", "3 of 6 rows have no latency"}},
		{builtin("osu-ranks"), "torus", []string{"fabric.dims=[2,2,1]"}, []string{"ranks", "4,16", "size", "4"}, nil, []string{"bcast", "allreduce", "latency (", "ranks"}},
		{builtin("osu"), "latency", nil, []string{"size", "0,64", "path", "intra-qfdb,inter-mezz:3,1,2"}, nil, []string{"intra-qfdb", "inter-mezz:3,1,2", "latency (", "bytes"}},
	} {
		e := x.e
		if x.preset != "" {
			var err error
			e, err = e.Preset(x.preset)
			require.NoError(t, err)
		}
		s := sweepOf(t, e, nil, x.choices...)
		s.Profiles, s.Overrides = []string{"exanest"}, x.set
		points, err := s.Points()
		require.NoError(t, err)
		results, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err)
		answer := s.Answer(results)
		require.Len(t, answer, len(x.says), "%s: %v", e.Name, answer)
		for i, says := range x.says {
			require.True(t, strings.HasPrefix(answer[i], says), answer[i])
		}
		if e == builtin("ip") {
			require.Contains(t, answer[1], fmt.Sprintf("sleeping %.2f Gb/s", resultAt(t, results, "over", "sleeping", "traffic", "udp", "mtu", 9000).Float("throughput")))
			require.Contains(t, answer[2], "ethernet "+ShortTime(resultAt(t, results, "over", "ethernet", "traffic", "rtt").Time("round_trip")))
		}
		if e == builtin("credits") {
			one, four := resultAt(t, results, "buffer", 1024, "benchmark", "alltoall"), resultAt(t, results, "buffer", 4096, "benchmark", "alltoall")
			change := 100 * (one.Time("latency").Seconds()/four.Time("latency").Seconds() - 1)
			require.Contains(t, answer[0], fmt.Sprintf(" %.1f%% %s than with 4 KiB.", max(change, -change), map[bool]string{true: "less", false: "more"}[change < 0]))
		}
		table, err := s.Table(results)
		require.NoError(t, err)
		picture := filepath.Join(t.TempDir(), "x.svg")
		require.NoError(t, table.PlotFile(picture, s.Plot()))
		svg, err := os.ReadFile(picture)
		require.NoError(t, err)
		for _, text := range append(x.drawn, e.Name+": ", "exanest") {
			require.Contains(t, string(svg), text, "the picture of %s has no %q", e.Name, text)
		}
	}
}

// resultAt is the first result with values of axes.
func resultAt(t *testing.T, results []*Result, values ...any) *Result {
	t.Helper()
	for _, r := range results {
		fits := true
		for i := 0; i < len(values); i += 2 {
			fits = fits && fmt.Sprint(r.Point.Value(values[i].(string))) == fmt.Sprint(values[i+1])
		}
		if fits {
			return r
		}
	}
	t.Fatalf("no result with %v", values)
	return nil
}
