package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/report"
)

// heavy is an experiment whose points need as many bytes as the product of
// their axes. It counts how many run at the same time.
func heavy() *Experiment {
	return &Experiment{
		Name: "heavy", Profiles: []string{"spin-int"},
		Axes: []Axis{
			{Name: "size", Kind: report.Size, Most: "1GiB", Default: "8"},
			{Name: "ranks", Kind: report.Count, Least: "2", Most: "1000000", Default: "2"},
			{Name: "loss", Kind: report.Share, Least: "0", Most: "1", Default: "0"},
		},
		Memory:  func(p *Point) int64 { return int64(p.Int("size")) * int64(p.Int("ranks")) },
		Columns: []report.Column{{Name: "result", Kind: report.Count}},
		Run: func(_ context.Context, p *Point) (Values, error) {
			return Values{"result": p.Int("size") + p.Int("ranks")}, nil
		},
	}
}

// A point that needs more than the limit is refused. The error names the axes
// that make it large, and no others.
func TestPointsThatNeedTooMuch(t *testing.T) {
	for _, x := range []struct{ sizes, ranks, limit, want string }{
		{"1MiB", "2,65536", "1GiB", "--size, --ranks: heavy, profile spin-int, 1 MiB, 65536 ranks, 0% loss needs about 64 GiB of memory, the limit is 1 GiB"},
		{"1GiB", "2", "1GiB", "--size: heavy, profile spin-int, 1 GiB, 2 ranks, 0% loss needs about 2 GiB of memory, the limit is 1 GiB"},
		{"8,64KiB", "2", "100KiB", "--size: heavy, profile spin-int, 64 KiB, 2 ranks, 0% loss needs about 128 KiB of memory, the limit is 100 KiB"},
		{"1MiB", "2,1024", "1GiB", ""},
		{"1GiB", "1000000", "0", ""},
	} {
		s, err := New(heavy())
		require.NoError(t, err)
		require.NoError(t, s.Choose("size", x.sizes))
		require.NoError(t, s.Choose("ranks", x.ranks))
		limit, err := s.grid.experiment.Axes[0].parse(x.limit)
		require.NoError(t, err)
		s.MemoryLimit = int64(limit.(int))
		_, err = s.Points()
		if x.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, x.want)
	}
}

// Points run at the same time only if their memory fits together, in any choice
// of points, and then as many as possible. The results are the same as without
// a limit.
func TestPointsThatRunAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := New(heavy())
		require.NoError(t, err)
		size := s.grid.experiment.axis("size")
		s.grid.values[size] = nil
		for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 1000), 1, 8, rapid.ID).Draw(t, "sizes") {
			s.grid.values[size] = append(s.grid.values[size], n)
		}
		points, err := s.Points()
		require.NoError(t, err)
		want, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err)
		all := s.atOnce(points)
		s.MemoryLimit = rapid.Int64Range(1, 20_000).Draw(t, "limit")
		n := s.atOnce(points)
		require.LessOrEqual(t, n, all)
		largest := func(n int) (sum int64) { // by trying all
			for set := range 1 << len(points) {
				total, members := int64(0), 0
				for i, p := range points {
					if set>>i&1 != 0 {
						total, members = total+p.Need(), members+1
					}
				}
				if members == n {
					sum = max(sum, total)
				}
			}
			return sum
		}
		require.True(t, n == 1 || largest(n) <= s.MemoryLimit)
		require.True(t, n == all || largest(n+1) > s.MemoryLimit)
		got, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// Every experiment of spinsim estimates the memory of its points.
func TestExperimentsSayWhatTheyNeed(t *testing.T) {
	for _, e := range All() {
		s, err := New(e)
		require.NoError(t, err)
		points, err := s.Points()
		require.NoError(t, err)
		for _, p := range points {
			require.Positive(t, p.Need(), p)
		}
	}
}

// A point fails if its steps take more than the memory limit leaves for them.
// The others of the sweep are measured. Without a limit all are.
func TestStepsThatTakeTooMuch(t *testing.T) {
	e, err := builtin("pingpong").Broken()
	require.NoError(t, err)
	s, err := New(e)
	require.NoError(t, err)
	s.Profiles = []string{"spin-int"}
	require.NoError(t, s.Choose("mode", "rdma"))
	require.NoError(t, s.Choose("size", "8,32MiB"))
	points, err := s.Points()
	require.NoError(t, err)
	for _, p := range points {
		p.Room = 4 << 20
	}
	_, err = s.Run(context.Background(), points, nil)
	var some *Unfinished
	require.ErrorAs(t, err, &some)
	require.Len(t, some.Measured(), 1)
	require.EqualError(t, some.Err, "pingpong rdma, profile spin-int, 2 ranks, 32 MiB: --breakdown: its steps are held until the run ends, and take more than 4 MiB, which is what the memory limit leaves for them: measure fewer or shorter messages, or raise --memory-limit")

	s.MemoryLimit = 1 << 30
	s.share(points, 2)
	need := points[0].Need() + points[1].Need()
	require.Equal(t, (s.MemoryLimit-64<<20-need)/4, points[0].Room, "half of what two leave, for each")
	s.MemoryLimit = 64 << 20
	s.share(points, 2)
	require.EqualValues(t, 16<<20, points[1].Room)
}
