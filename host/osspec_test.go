package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/sim"
)

// An impossible system is one error that names the field and the expected
// value. An absent system is valid.
func TestSpecs(t *testing.T) {
	for override, want := range map[string]string{
		"kind=windows":        `kind: "windows", expected none or linux`,
		"memory=3MiB":         "memory: 3 MiB, expected a multiple of 2 MiB",
		"memory=32TiB":        "memory: 32 TiB, expected 0 B to 16 TiB",
		"address_bits=40":     "address_bits: 40, expected 39 or 48",
		"watermark_low=1MiB":  "watermark_low: 1 MiB, expected 64 MiB to 16 GiB",
		"watermark_high=1MiB": "watermark_high: 1 MiB, expected 80 MiB to 17179869183 B",
		"kernel_core=4":       "kernel_core: 4, expected 0 to 3",
		"gup_call=2s":         "gup_call: 2 s, expected 0 s to 1 s",
		"interrupt=-1ns":      "interrupt",
		"huge_pages=madvise":  `huge_pages: "madvise", expected never or always`,
	} {
		_, err := hosttest.Spec(override)
		require.ErrorContains(t, err, want)
	}
	_, err := hosttest.Spec("huge_pages=always", "collapse_min=0")
	require.EqualError(t, err, "collapse_min: 0, expected 1 to 512")
	for override, want := range map[string]string{
		"kind=tape":       `kind: "tape", expected none or nvme`,
		"queue_depth=0":   "queue_depth: 0, expected 1 to 65536",
		"read_latency=2s": "read_latency: 2 s, expected 0 s to 1 s",
		"swap=17TiB":      "swap: 17 TiB, expected 0 B to 16 TiB",
	} {
		_, err := hosttest.Storage(override)
		require.EqualError(t, err, want)
	}
	require.NoError(t, new(host.OSSpec).Validate(1))
	require.NoError(t, new(host.StorageSpec).Validate())
}

// spans is a tracer that records everything.
type spans struct {
	tracks []string
	spans  []string
}

func (s *spans) Track(group string, _ int, name string) sim.TrackID {
	s.tracks = append(s.tracks, group+"/"+name)
	return sim.TrackID(len(s.tracks) - 1)
}

func (s *spans) Span(t sim.TrackID, name string, from, to sim.Time, _ uint64, _ ...sim.Arg) {
	s.spans = append(s.spans, s.tracks[t]+" "+name+" "+from.String()+" to "+to.String())
}

func (s *spans) Instant(sim.TrackID, string, sim.Time, uint64, ...sim.Arg) {}

func (s *spans) Counter(sim.TrackID, string, sim.Time, float64) {}

// The timeline shows an interrupt, its tasklet and the tasklet's work, and the
// program that they interrupt.
func TestTimelineOfACore(t *testing.T) {
	tracer := &spans{}
	eng := sim.New(1)
	eng.SetTracer(tracer)
	n := &hosttest.Node{Engine: eng}
	n.ID = eng.Add("Node[0]", n)
	n.CPU.Init(eng, n.ID, 2, &host.CPUSpec{}, "Rank", 0)
	tasklet := n.CPU.NewTasklet("pages", func(th *host.Thread) { th.Run(2*us, "get_user_pages") })
	irq := n.CPU.RequestIRQ(1, "smmu", func(th *host.Thread) {
		th.Run(us, "read registers")
		tasklet.Schedule(th.Core())
	})
	n.Go(1, "program", func(th *host.Thread) error { th.Run(10*us, "compute"); return nil })
	n.At(4*us, irq.Raise)
	require.NoError(t, eng.Run())
	require.Equal(t, []string{
		"Rank/CPU 1 read registers 4 µs to 5 µs", "Rank/CPU 1 interrupt smmu 4 µs to 5 µs",
		"Rank/CPU 1 get_user_pages 5 µs to 7 µs", "Rank/CPU 1 tasklet pages 5 µs to 7 µs",
		"Rank/CPU 1 compute 0 s to 13 µs",
	}, tracer.spans)
	eng.Close()
}
