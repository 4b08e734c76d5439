package experiment

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// tallying is an experiment whose value depends on the profile and the axes. It
// counts its measurements.
func tallying(t *testing.T, runs *int, set ...string) *Sweep {
	t.Helper()
	e := definition()
	e.Run = func(_ context.Context, p *Point) (Values, error) {
		*runs++
		return Values{"latency": sim.Time(1_000_000*p.Profile.HPU.Cores + 1000*p.Profile.HPU.Contexts + p.Int("size"))}, nil
	}
	e.Published = []report.Published{{At: []report.Is{{Column: "mode", Value: "a"}, {Column: "size", Value: 8}}, Column: "latency", Value: 1, Source: "a paper"}}
	s, err := New(e)
	require.NoError(t, err)
	s.Profiles, s.Workers = []string{"spin-int", "spin-dis"}, 1
	for _, one := range set {
		require.NoError(t, s.Set(one))
	}
	return s
}

// written is the table of a sweep.
func written(t *testing.T, s *Sweep, format report.Format) string {
	t.Helper()
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(t.Context(), points, nil)
	require.NoError(t, err)
	table, err := s.Table(results)
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, table.Write(&b, format))
	return b.String()
}

// Several values of fields are measured with every combination of the axes,
// each on its own profile. A published number stands beside the values of the
// unchanged profile. The document can be made again.
func TestSeveralValuesOfFields(t *testing.T) {
	var runs int
	s := tallying(t, &runs, "hpu.cores=2..8*2", "hpu.contexts=1, 2")
	points, err := s.Points()
	require.NoError(t, err)
	require.Len(t, points, 2*2*2*3*2)
	for _, p := range points {
		require.Equal(t, []int{p.Int("hpu.cores"), p.Int("hpu.contexts")}, []int{p.Profile.HPU.Cores, p.Profile.HPU.Contexts})
	}
	results, err := s.Run(t.Context(), points, nil)
	require.NoError(t, err)
	table, err := s.Table(results)
	require.NoError(t, err)
	beside := 0
	for _, row := range rowsOf(t, table) {
		if row["published_source"] != "" {
			beside++
			require.Equal(t, []string{"4", "2", "a", "8"}, []string{row["hpu_cores"], row["hpu_contexts"], row["mode"], row["size"]})
		}
	}
	require.Equal(t, 2, beside, "one of each profile: they have four HPUs of two contexts")

	document := written(t, s, report.JSONFormat)
	record, err := provenance.Read([]byte(document))
	require.NoError(t, err)
	again, _, err := RerunSweep(record, tallying(t, &runs).grid.experiment, nil)
	require.NoError(t, err)
	require.Equal(t, document, written(t, again, report.JSONFormat))
}

// Values of fields that are lists or texts are separated by commas outside
// brackets.
func TestListsOfFields(t *testing.T) {
	for set, want := range map[string][]any{
		"hpu.cores=1,2":                     {1, 2},
		"fabric.mtu=1KiB,4KiB":              {1024, 4096},
		"nic.dma=100ns..400ns*2":            {100 * sim.Nanosecond, 200 * sim.Nanosecond, 400 * sim.Nanosecond},
		"nic.x=0..1+0.5":                    {0.0, 0.5, 1.0},
		"smmu.x=true,false":                 {true, false},
		"hpu.clock=1GHz,2.5GHz":             {"1GHz", "2.5GHz"},
		"fabric.dims=[4,4,2], [8,4]":        {"[4,4,2]", "[8,4]"},
		"fabric.topology=../a.yaml,b/../c":  {"../a.yaml", "b/../c"},
		`a.b={x: "1,2", y: [3]},{x: '4,5'}`: {`{x: "1,2", y: [3]}`, `{x: '4,5'}`},
	} {
		s, err := New(definition())
		require.NoError(t, err)
		require.NoError(t, s.Set(set), set)
		path, _, _ := strings.Cut(set, "=")
		require.Equal(t, want, s.Values(path), set)
	}
	for set, wrong := range map[string]string{
		"hpu.cores=1,1":           "hpu.cores: 1 is given twice",
		"hpu.cores=1,":            "an empty value",
		"hpu.cores=8..2*2":        "expected rising",
		"hpu.clock=1GHz..4GHz*2":  "expected rising numbers, sizes or times",
		"hpu.clock=1GHz,1GHz":     "1GHz is given twice",
		"hpu.cores=1..1e9+1":      "more than 10000 values",
		"hpu.cores=1..1000000000": "",
	} {
		s, err := New(definition())
		require.NoError(t, err)
		if err := s.Set(set); wrong != "" {
			require.ErrorContains(t, err, wrong, set)
		}
	}
	s, err := New(definition())
	require.NoError(t, err)
	require.NoError(t, s.Set("hpu.cores=1,2"))
	require.ErrorContains(t, s.Set("hpu.cores=4,8"), "hpu.cores is given several values twice")
}

// A profile that needs a value of a field, such as a torus without lengths, is
// measured with each value, and again from its document.
func TestValuesThatAProfileNeeds(t *testing.T) {
	var runs int
	s := tallying(t, &runs, "fabric.kind=torus", "fabric.dims=[4,2],[2,2,2]")
	s.Profiles = []string{"spin-int", "exanest"} // the second is a torus anyway
	points, err := s.Points()
	require.NoError(t, err)
	var dims [][]int
	for _, p := range points {
		dims = append(dims, p.Profile.Fabric.Dims)
	}
	require.Contains(t, dims, []int{4, 2})
	require.Contains(t, dims, []int{2, 2, 2})
	document := written(t, s, report.JSONFormat)
	record, err := provenance.Read([]byte(document))
	require.NoError(t, err)
	again, _, err := RerunSweep(record, tallying(t, &runs).grid.experiment, nil)
	require.NoError(t, err)
	require.Equal(t, document, written(t, again, report.JSONFormat))

	s = tallying(t, &runs, "fabric.kind=torus", "fabric.dims=[0],[2,2,2]")
	_, err = s.Points()
	require.ErrorContains(t, err, "got [0]")
}

// A sweep with a checkpoint measures only what is missing. Its table is the
// same, with any earlier measurements and parts.
func TestCheckpoint(t *testing.T) {
	var runs int
	set := []string{"hpu.cores=1,4"}
	want := written(t, tallying(t, &runs, set...), report.JSONFormat)
	all := runs
	rapid.Check(t, func(r *rapid.T) {
		folder := t.TempDir()
		of := rapid.IntRange(1, 30).Draw(r, "parts")
		before := map[int]bool{}
		for range rapid.IntRange(0, 4).Draw(r, "runs before") {
			part := checkpoint.Part{Index: rapid.IntRange(1, of).Draw(r, "part"), Of: of}
			s := tallying(t, &runs, set...)
			s.Seed = uint64(rapid.IntRange(0, 3).Draw(r, "seed") / 3) // sometimes another
			kept, err := checkpoint.Open(folder, part)
			require.NoError(t, err)
			s.Checkpoint = kept
			points, err := s.Points()
			require.NoError(t, err)
			var these []*Point
			for i, p := range points {
				if part.Has(i) {
					these = append(these, p)
					before[i] = before[i] || s.Seed == 1
				}
			}
			_, err = s.Run(t.Context(), these, nil)
			require.NoError(t, err)
			require.NoError(t, kept.Close())
		}
		done := 0
		for _, is := range before { //lint:maporder a count
			if is {
				done++
			}
		}
		runs = 0
		s := tallying(t, &runs, set...)
		kept, err := checkpoint.Open(folder, checkpoint.Part{})
		require.NoError(t, err)
		s.Checkpoint = kept
		require.Equal(t, want, written(t, s, report.JSONFormat))
		require.Equal(t, all-done, runs)
		require.NoError(t, kept.Close())
	})
}

// A point gets the processors that no other needs. Kept ones need none.
func TestKeptPointsTakeNoProcessors(t *testing.T) {
	folder := t.TempDir()
	var runs int
	run := func(count int) []*Point {
		s := tallying(t, &runs, "hpu.cores=1,4")
		s.Workers = 2
		kept, err := checkpoint.Open(folder, checkpoint.Part{})
		require.NoError(t, err)
		s.Checkpoint = kept
		points, err := s.Points()
		require.NoError(t, err)
		points = points[:count]
		_, err = s.Run(t.Context(), points, nil)
		require.NoError(t, err)
		require.NoError(t, kept.Close())
		return points
	}
	const count = 4
	run(count - 1)
	require.Equal(t, 2, run(count)[count-1].Cores)
}
