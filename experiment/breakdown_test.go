package experiment

import (
	"bytes"
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// broken measures an experiment of All with its breakdown, at one point.
func broken(t require.TestingT, name, device string, values Values, overrides ...string) *Result {
	e, err := Find(name)
	require.NoError(t, err)
	b, err := e.Broken()
	require.NoError(t, err)
	require.NoError(t, b.Check())
	d, err := profile.Load(device, overrides...)
	require.NoError(t, err)
	p, err := b.At(d, values)
	require.NoError(t, err)
	r, err := b.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// sumOf adds the parts of a result.
func sumOf(r *Result) (sum sim.Time) {
	for _, name := range breakdownParts() {
		sum += r.Time(name)
	}
	return sum
}

// For any measurement on any device, each picosecond is in one part. The
// breakdown changes no measured value, and almost no time is unknown.
func TestPartsAddUp(t *testing.T) {
	var divided []string
	for _, e := range All() {
		if e.Undivided == "" && e.Divided == nil {
			divided = append(divided, e.Name)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		e, err := Find(rapid.SampledFrom(divided).Draw(r, "experiment"))
		require.NoError(r, err)
		var set []string
		devices := e.DefaultProfiles()
		device := rapid.SampledFrom(devices).Draw(r, "profile")
		if device == "spin-int" || device == "spin-dis" {
			set = append(set, "fabric.mtu="+rapid.SampledFrom([]string{"256", "1024", "4096"}).Draw(r, "mtu"), "hpu.cores="+rapid.SampledFrom([]string{"1", "4"}).Draw(r, "cores"),
				"transport.kind="+rapid.SampledFrom([]string{"none", "reliable"}).Draw(r, "transport"))
		}
		values := maps.Clone(rapid.SampledFrom(e.Smoke).Draw(r, "point"))
		for i := range e.Axes {
			a := &e.Axes[i]
			switch {
			case a.Name == "size":
				values[a.Name] = 16 * rapid.IntRange(1, 1500).Draw(r, "size")
			case a.Kind == report.Text && rapid.Bool().Draw(r, "other "+a.Name):
				list, err := a.Parse(a.DefaultList())
				require.NoError(r, err)
				values[a.Name] = rapid.SampledFrom(list).Draw(r, a.Name)
			}
		}
		d, err := profile.Load(device, set...)
		if err != nil {
			return
		}
		b, err := e.Broken()
		require.NoError(r, err)
		p, err := b.At(d, values)
		if err != nil {
			return // no such point
		}
		with, err := b.Measure(context.Background(), p)
		plain, err2 := e.At(d, values)
		require.NoError(r, err2)
		without, err2 := e.Measure(context.Background(), plain)
		if err != nil || err2 != nil {
			require.Equal(r, err2 == nil, err == nil, "%v %v", err, err2)
			return
		}
		for column, v := range without.Values {
			require.Equal(r, v, with.Values[column], column)
		}
		if with.Values[b.Followed] == nil { // no operation has ended
			for _, part := range breakdownParts() {
				require.Nil(r, with.Values[part], part)
			}
			return
		}
		require.Equal(r, with.Time(b.Followed), sumOf(with))
		require.LessOrEqual(r, with.Time("in_other"), with.Time(b.Followed)/20, "%s: %v", p, with.Values)
	})
}

// The parts of a ping-pong of one packet between hosts follow from the profile:
// LogGP with DMA (sPIN'17 §4, table of parameters). Half of a round trip has
// each part once.
func TestPartsOfPingpong(t *testing.T) {
	const size = 2048
	r := broken(t, "pingpong", "spin-dis", Values{"mode": ModeRDMA, "size": size})
	p := r.Point.Profile
	dma := 2*p.DMA.Latency + p.DMA.Bandwidth.Time(size)
	require.Equal(t, p.NIC.Overhead, r.Time("in_post"))
	require.Equal(t, dma, r.Time("in_fetch"), "request and answer cross the bus")
	require.Equal(t, p.DMA.Latency+p.DMA.Bandwidth.Time(size), r.Time("in_deposit"), "a write crosses it once")
	require.Equal(t, p.NIC.MatchHeader, r.Time("in_match"))
	require.Equal(t, p.Host.Poll, r.Time("in_look"))
	require.Equal(t, p.Host.Match, r.Time("in_compute"))
	require.Zero(t, r.Time("in_wait")+r.Time("in_handler")+r.Time("in_record")+r.Time("in_other"))
	require.Equal(t, r.Time(LatencyColumn)-p.NIC.Overhead-dma-p.DMA.Latency-p.DMA.Bandwidth.Time(size)-p.NIC.MatchHeader-p.Host.Poll-p.Host.Match, r.Time("in_wire"))
}

// In a broadcast down a binomial tree over 8 ranks, the last rank is three
// messages from the root. So its path has each part three times.
func TestPartsOfBroadcast(t *testing.T) {
	r := broken(t, "bcast", "spin-int", Values{"mode": ModeRDMA, "ranks": 8, "size": 8})
	p := r.Point.Profile
	require.Equal(t, 3*p.NIC.Overhead, r.Time("in_post"))
	require.Equal(t, 3*p.NIC.MatchHeader, r.Time("in_match"))
	require.Equal(t, 3*p.Host.Poll, r.Time("in_look"))
	require.Equal(t, 3*(2*p.DMA.Latency+p.DMA.Bandwidth.Time(8)), r.Time("in_fetch"))
	require.Zero(t, r.Time("in_other"))
	handlers := broken(t, "bcast", "spin-int", Values{"mode": ModeSpinStream, "ranks": 8, "size": 8})
	require.Equal(t, p.NIC.Overhead, handlers.Time("in_post"), "handlers forward")
	require.Equal(t, 2*p.DMA.Latency+p.DMA.Bandwidth.Time(8), handlers.Time("in_fetch"), "from the device")
}

// A device that is always busy shows it. Handlers that need twice the available
// HPUs keep them busy, wait for them, and leave half of the link idle.
func TestUseOfBusyHPUs(t *testing.T) {
	r := broken(t, "hpus", "spin-int", Values{"handler-time": 400 * sim.Nanosecond, "hpus": 4, "size": 2048})
	interval := r.Point.Profile.Fabric.Rate.Time(2048)
	share := float64(4*interval) / float64(r.Time("handler")) // of line rate
	require.Greater(t, r.Float("busy_hpus"), 0.97)
	require.InDelta(t, share, r.Float("busy_ingress"), 0.02)
	require.Greater(t, r.Values["max_hpu_queue"], int64(100))
	require.Equal(t, r.Values["max_hpu_queue"].(int64)*2048, r.Values["max_packet_buffer"])
	require.Greater(t, r.Time("in_wait"), r.Time(LatencyColumn)/3)
}

// Percentiles are nearest ranks.
func TestPercentile(t *testing.T) {
	list := []sim.Time{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for percent, want := range map[int]sim.Time{1: 1, 10: 1, 11: 2, 50: 5, 95: 10, 90: 9, 99: 10, 100: 10} {
		require.Equal(t, want, Percentile(list, percent), percent)
	}
	require.Equal(t, sim.Time(7), Percentile([]sim.Time{7}, 50))
	require.Zero(t, Percentile(nil, 50))
}

// Samples are the operations one by one, and their mean is the latency. A
// result with a breakdown is repeated with it.
func TestSamplesAndRepetition(t *testing.T) {
	e, err := Find("kv")
	require.NoError(t, err)
	b, err := e.Broken()
	require.NoError(t, err)
	s, err := New(b)
	require.NoError(t, err)
	s.Profiles = []string{"spin-int"}
	for axis, list := range map[string]string{"clients": "2", "ops": "7", "mode": "spin,host", "records": "20", "workload": "B"} {
		require.NoError(t, s.Choose(axis, list))
	}
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(context.Background(), points, nil)
	require.NoError(t, err)
	samples := s.Samples(results)
	require.Equal(t, 2*2*7, samples.Len())
	sum, last := sim.Time(0), len(samples.Columns)-1
	for _, row := range samples.Rows()[:14] {
		sum += row[last].(sim.Time)
	}
	require.Equal(t, results[0].Time(LatencyColumn), sum/14)
	require.Equal(t, int64(14), results[0].Values["op_count"])
	require.Equal(t, results[0].Time("p99"), results[0].Time("op_p99"), "the same estimator as the store's")

	document := func(s *Sweep, results []*Result) []byte {
		table, err := s.Table(results)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, table.Write(&out, report.JSONFormat))
		return out.Bytes()
	}
	again, _, err := RerunSweep(s.Record(), e, nil)
	require.NoError(t, err)
	points, err = again.Points()
	require.NoError(t, err)
	repeated, err := again.Run(context.Background(), points, nil)
	require.NoError(t, err)
	require.Equal(t, document(s, results), document(again, repeated))
}

// A user's own experiment has a breakdown like ours. It is an error if it notes
// no operation, or if its value is not their mean.
func TestOwnExperimentIsFollowed(t *testing.T) {
	run := func(what int) func(context.Context, *Point) (Values, error) {
		return func(ctx context.Context, p *Point) (Values, error) {
			var took sim.Time
			_, err := p.Simulate(ctx, func(proc *runtime.Proc) error { return Send(proc, 1, make([]byte, 10)) }, func(proc *runtime.Proc) error {
				in, err := p.Receive(proc, 10)
				if err != nil {
					return err
				}
				_, err = in.Wait()
				if took = proc.Now(); what > 0 {
					p.Operation(proc, 0)
				}
				return err
			})
			return Values{"time": took * sim.Time(max(what, 1))}, err
		}
	}
	for what, wrong := range []string{"own has measured no operation that could be broken down", "", "the parts of time add up to"} {
		e := &Experiment{
			Name: "own", Axes: []Axis{{Name: "n", Kind: report.Count, Default: "1", Help: "n"}}, Columns: []report.Column{{Name: "time", Unit: "us", Kind: report.Duration, Help: "time"}},
			Run: run(what), Followed: "time",
		}
		require.NoError(t, e.Check())
		b, err := e.Broken()
		require.NoError(t, err)
		d, err := profile.Load("spin-int")
		require.NoError(t, err)
		p, err := b.At(d, nil)
		require.NoError(t, err)
		r, err := b.Measure(context.Background(), p)
		if wrong != "" {
			require.ErrorContains(t, err, wrong)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, r.Time("time"), sumOf(r))
	}
	_, err := (&Experiment{Name: "none"}).Broken()
	require.ErrorContains(t, err, "none follows no operation; those that do are pingpong, accumulate")
}

// Every experiment of spinsim has a breakdown, or a reason why not. At a point
// of each, the parts add up to the picosecond, almost all time is known, and
// the measured values are the same as without a breakdown.
func TestEveryExperimentAddsUp(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			b, err := e.Broken()
			if e.Undivided != "" {
				require.EqualError(t, err, e.Name+" is not divided: "+e.Undivided)
				return
			}
			require.NoError(t, err)
			require.NoError(t, b.Check())
			require.NotEmpty(t, e.Smoke)
			values := e.Smoke[0]
			with := broken(t, e.Name, e.DefaultProfiles()[0], values)
			whole := with.Time(b.Followed)
			require.Positive(t, whole)
			require.Equal(t, whole, sumOf(with))
			require.LessOrEqual(t, with.Time("in_other"), whole/20, "%v", with.Values)
			if e.Divided != nil {
				return // it measures something else
			}
			p, err := e.At(with.Point.Profile, values)
			require.NoError(t, err)
			without, err := e.Measure(context.Background(), p)
			require.NoError(t, err)
			for column, v := range without.Values {
				require.Equal(t, v, with.Values[column], column)
			}
			require.NotEmpty(t, p.Operations(), "--samples has them without a breakdown")
		})
	}
}

// Every experiment has samples, also if its axes are named as their columns.
func TestColumnsOfSamples(t *testing.T) {
	for _, e := range All() {
		s, err := New(e)
		require.NoError(t, err)
		require.NoError(t, report.CheckColumns(s.Samples(nil).Columns), e.Name)
	}
}
