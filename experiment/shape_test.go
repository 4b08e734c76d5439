package experiment

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The tests of this file compare the predictions with every order between modes
// and profiles in sPIN'17 (spec/spin.md §4).

// latencies measures modes of an experiment at one point. No modes: all of
// them.
func latencies(t *testing.T, e *Experiment, name string, ranks, bytes int, modes ...string) map[string]sim.Time {
	device, err := profile.Load(name)
	require.NoError(t, err)
	times := map[string]sim.Time{}
	if len(modes) == 0 {
		modes = e.Axis("mode").Of
	}
	for _, mode := range modes {
		p, err := e.At(device, Values{"mode": mode, "ranks": ranks, "size": bytes})
		require.NoError(t, err)
		p.Seed = 3
		r, err := e.Measure(context.Background(), p)
		require.NoError(t, err)
		times[mode] = r.Time("latency")
	}
	return times
}

// sPIN'17 §4.4.1: small messages are fastest with sPIN and slowest with RDMA.
// Large ones are fastest with a stream. The difference is larger for dis.
func TestPingpongShape(t *testing.T) {
	for _, bytes := range []int{4, 64, 1024, 4096} {
		gap := map[string]sim.Time{}
		for _, name := range []string{"spin-dis", "spin-int"} {
			l := latencies(t, builtin("pingpong"), name, 2, bytes)
			require.Less(t, l[ModeSpinStore], l[ModeP4], "%s %d B", name, bytes)
			require.Less(t, l[ModeSpinStream], l[ModeP4], "%s %d B", name, bytes)
			require.Less(t, l[ModeP4], l[ModeRDMA], "%s %d B", name, bytes)
			gap[name] = l[ModeRDMA] - l[ModeSpinStream]
		}
		require.Greater(t, gap["spin-dis"], gap["spin-int"], "%d B", bytes)
	}
	for _, name := range []string{"spin-dis", "spin-int"} {
		l := latencies(t, builtin("pingpong"), name, 2, 256<<10)
		for _, mode := range []string{ModeRDMA, ModeP4, ModeSpinStore} {
			require.Less(t, l[ModeSpinStream], l[mode], "%s", name)
		}
	}
}

// sPIN'17 §4.4.2: small messages are slower with sPIN than with RDMA, most of
// all for dis. Large ones are faster.
func TestAccumulateShape(t *testing.T) {
	loss := map[string]sim.Time{}
	for _, name := range []string{"spin-dis", "spin-int"} {
		small := latencies(t, builtin("accumulate"), name, 2, 64)
		loss[name] = small[ModeSpinStream] - small[ModeRDMA]
		require.Positive(t, loss[name])
		large := latencies(t, builtin("accumulate"), name, 2, 256<<10)
		require.Less(t, large[ModeSpinStream], large[ModeRDMA], name)
	}
	require.Greater(t, loss["spin-dis"], loss["spin-int"])
}

// sPIN'17 §4.4.3: the handlers are the fastest, and dis gains more. The table
// in README.md has the same for 64 KiB on 1,024 ranks.
func TestBroadcastShape(t *testing.T) {
	for _, ranks := range []int{4, 16, 64, 256, 1024} {
		for _, bytes := range []int{8, 64 << 10} {
			if ranks == 1024 && bytes > 8 {
				continue
			}
			gain := map[string]float64{}
			for _, profile := range []string{"spin-dis", "spin-int"} {
				l := latencies(t, builtin("bcast"), profile, ranks, bytes, ModeRDMA, ModeP4, ModeSpinStream)
				require.Less(t, l[ModeSpinStream], l[ModeP4], "%s %d ranks %d B", profile, ranks, bytes)
				require.Less(t, l[ModeP4], l[ModeRDMA], "%s %d ranks %d B", profile, ranks, bytes)
				gain[profile] = 1 - float64(l[ModeSpinStream])/float64(l[ModeRDMA])
			}
			require.Greater(t, gain["spin-dis"], gain["spin-int"], "%d ranks %d B", ranks, bytes)
		}
	}
}

// sPIN'17 §4.4.2: saturation follows Little's law. With 8 HPUs a handler may
// take 53 ns at any packet size, and about 650 ns with packets of 4 KiB. From
// 335 B on the link is the limit.
func TestHPUsShape(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	run := func(cores, bytes int, handler sim.Time) *Result {
		p, err := builtin("hpus").At(device, Values{"hpus": cores, "size": bytes, "handler-time": handler})
		require.NoError(t, err)
		require.Equal(t, []int{cores, bytes}, []int{p.Profile.HPU.Cores, int(p.Profile.Fabric.MTU)})
		r, err := builtin("hpus").Measure(context.Background(), p)
		require.NoError(t, err)
		require.InDelta(t, 0, r.Float("littles_law_deviation"), 0.02, "%d HPUs, %d B, %v", cores, bytes, handler)
		return r
	}
	for _, cores := range []int{1, 3, 8, 16} {
		for _, bytes := range []int{64, 335, 4096} {
			for _, handler := range []sim.Time{60 * sim.Nanosecond, 400 * sim.Nanosecond, 2 * sim.Microsecond} {
				run(cores, bytes, handler)
			}
		}
	}
	millions := func(interval sim.Time) float64 { return 1 / interval.Microseconds() }
	for _, bytes := range []int{64, 256, 334} {
		w := run(8, bytes, 50*sim.Nanosecond) // whole iterations: a little more than requested
		require.InEpsilon(t, millions(6700), w.Float("rate"), 0.002, "the gap g is the limit")
	}
	for _, bytes := range []int{336, 512, 4096} {
		w := run(8, bytes, 50*sim.Nanosecond) // whole iterations: a little more than requested
		require.InEpsilon(t, millions(sim.Time(20*bytes)), w.Float("rate"), 0.002, "the link is the limit")
	}
	fits, slow := run(8, 4096, 640*sim.Nanosecond), run(8, 4096, 680*sim.Nanosecond)
	require.InEpsilon(t, millions(20*4096), fits.Float("rate"), 0.002)
	require.Less(t, slow.Float("rate"), millions(20*4096)*0.99)
	require.Less(t, math.Abs(fits.Time("handler").Nanoseconds()-640), 5.0, "the handler takes the time asked for")
}

// sPIN'17 §4, LogGP: the link limits long messages in a row, G for each byte.
func TestLongMessagesReachTheLinkRate(t *testing.T) {
	const bytes, window = 4 << 20, 8
	for _, name := range []string{"spin-dis", "spin-int"} {
		p, err := profile.Load(name)
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
		require.NoError(t, err)
		var took sim.Time
		require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
			in, err := AppendEntry(p.NI(), RequestPT, RequestBits, p.Alloc(bytes), nil)
			if err != nil {
				return err
			}
			err = in.Wait(window * bytes)
			took = p.Now()
			return err
		}))
		require.NoError(t, c.Spawn(0, "source", func(p *runtime.Proc) error {
			data := p.Alloc(bytes)
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: bytes})
			for range window {
				if err == nil {
					err = p.NI().Put(portals.Put{MD: md, Length: bytes, Target: Peer(1), PT: RequestPT, MatchBits: RequestBits})
				}
			}
			return err
		}))
		require.NoError(t, c.Run(context.Background()))
		require.NoError(t, c.Close())
		require.InEpsilon(t, p.Fabric.Rate.Time(window*bytes).Nanoseconds(), took.Nanoseconds(), 0.01)
	}
}
