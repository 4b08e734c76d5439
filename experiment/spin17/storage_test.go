package spin17

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/spc"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// play measures a point of a trace. The experiment compares the bytes.
func play(t require.TestingT, text, device string, v experiment.Values) *experiment.Result {
	trace, err := spc.Read(strings.NewReader(text), "a.spc")
	require.NoError(t, err)
	p, err := profile.Load(device)
	require.NoError(t, err)
	e := Storage("a.spc", trace)
	require.NoError(t, e.Check())
	at, err := e.At(p, v)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), at)
	require.NoError(t, err, "%s %v", device, v)
	return r
}

// A trace of one write takes as long and costs as much as the write. The
// requests of one client take their sum.
func TestStorageIsTheSumOfItsRequests(t *testing.T) {
	for _, mode := range []string{experiment.ModeRDMA, experiment.ModeP4, experiment.ModeSpin} {
		write := storage(t, "spin-int", experiment.Values{"mode": mode, "size": 4096})
		read := storage(t, "spin-int", experiment.Values{"mode": experiment.ModeRDMA, "op": raid5Read, "size": 4096})
		one := play(t, "3,80,4096,W,5.0\n", "spin-int", experiment.Values{"mode": mode})
		require.Equal(t, write.Time(experiment.LatencyColumn), one.Time("time"), mode)
		for _, column := range []string{"host_cpu", "host_memory", "handler_cycles"} {
			require.Equal(t, write.Values[column], one.Values[column], "%s %s", mode, column)
		}
		two := play(t, "3,80,4096,W,5.0\n3,80,4096,R,6.0\n3,80,0,R,7.0\n", "spin-int", experiment.Values{"mode": mode})
		require.Equal(t, write.Time(experiment.LatencyColumn)+read.Time(experiment.LatencyColumn), two.Time("time"), mode)
		require.Equal(t, two.Time("time")/3, two.Time(experiment.LatencyColumn))
		require.Equal(t, []any{2, 1, 8192}, []any{two.Values["reads"], two.Values["writes"], two.Values["data"]})
		require.Equal(t, min(write.Time(experiment.LatencyColumn), read.Time(experiment.LatencyColumn)), two.Time("p50"), "the second of 0 and these")
		first := play(t, "3,80,4096,W,5.0\n3,80,4096,R,6.0\n", "spin-int", experiment.Values{"mode": mode, "requests": 1})
		require.Equal(t, one.Values, first.Values)
	}
}

// With a speed, requests begin at their time stamps. Their latency counts from
// then, even if they wait for an earlier request.
func TestStorageKeepsTime(t *testing.T) {
	const text = "0,0,4096,R,10.000000\n0,8,4096,R,10.000001\n0,16,4096,R,10.001\n"
	one := play(t, text, "spin-int", experiment.Values{"mode": experiment.ModeRDMA, "requests": 1}).Time("time")
	require.Less(t, one, sim.Microsecond, "else the second would not wait below")
	for speed, wait := range map[float64]sim.Time{1: 0, 2: one - sim.Microsecond/2} {
		r := play(t, text, "spin-int", experiment.Values{"mode": experiment.ModeRDMA, "speed": speed})
		require.Equal(t, sim.Time(float64(sim.Millisecond)/speed)+one, r.Time("time"), "%v", speed)
		require.Equal(t, (3*one+max(wait, 0))/3, r.Time(experiment.LatencyColumn), "%v", speed)
	}
	require.Equal(t, 3*one, play(t, text, "spin-int", experiment.Values{"mode": experiment.ModeRDMA}).Time("time"))
}

// With any trace, array and number of clients every byte is right. The
// experiment compares them.
func TestStorageOfAnyTrace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		units := rapid.IntRange(1, 4).Draw(rt, "units")
		for i := range rapid.IntRange(units, 12).Draw(rt, "requests") {
			unit := i
			if i >= units {
				unit = rapid.IntRange(0, units-1).Draw(rt, "unit")
			}
			at := rapid.Int64Range(0, 40).Draw(rt, "address") + 1_000_000_000*rapid.Int64Range(0, 1).Draw(rt, "far")
			sizes := []int{0, 1, 511, 512, 5000, 20_000}
			if i == 0 { // a trace with sizes of 0 only is refused
				sizes = sizes[1:]
			}
			n := rapid.SampledFrom(sizes).Draw(rt, "size")
			fmt.Fprintf(&text, "%d,%d,%d,%s,%d.0\n", 7*unit, at, n, rapid.SampledFrom([]string{"R", "W", "W"}).Draw(rt, "op"), i)
		}
		v := experiment.Values{
			"mode":    rapid.SampledFrom([]string{experiment.ModeRDMA, experiment.ModeP4, experiment.ModeSpin}).Draw(rt, "mode"),
			"clients": rapid.IntRange(1, units).Draw(rt, "clients"),
			"servers": rapid.IntRange(1, 5).Draw(rt, "servers"),
			"cores":   rapid.IntRange(1, 3).Draw(rt, "cores"),
			"unit":    rapid.SampledFrom([]int{512, 1000, 4096}).Draw(rt, "unit of stripes"),
			"block":   rapid.SampledFrom([]int{1, 512, 4096}).Draw(rt, "block"),
		}
		if v["durable"] = rapid.Bool().Draw(rt, "durable"); v["durable"] == true {
			play(rt, text.String(), "../../docs/profiles/spin-int-nvme.yaml", v)
			return
		}
		play(rt, text.String(), "spin-int", v)
	})
}

// Among the published loads, the load that writes gains, most on the integrated
// NIC, and a load that reads does not (§5.3: 2.8% to 43.7%, most for int with
// the transactions). The paper does not say whether a read uses a server's
// core; here it never does.
func TestStorageHasThePublishedShape(t *testing.T) {
	gain := func(load, device string) float64 {
		m, err := spc.ModelOf(load)
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, m.Generate(300, 1).Write(&text, "", ""))
		time := func(mode string) float64 {
			return float64(play(t, text.String(), device, experiment.Values{"mode": mode}).Time("time"))
		}
		return 1 - time(experiment.ModeSpin)/time(experiment.ModeRDMA)
	}
	dis, integrated := gain("oltp", "spin-dis"), gain("oltp", "spin-int")
	require.Greater(t, dis, 0.028)
	require.Greater(t, integrated, dis)
	require.Less(t, integrated, 0.437)
	require.InDelta(t, 0, gain("websearch", "spin-int"), 0.01)
}

// Invalid points are refused.
func TestStorageRefuses(t *testing.T) {
	trace := spc.Models[0].Generate(3, 1)
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	_, err = Storage("a", trace).At(p, experiment.Values{"clients": 8})
	require.ErrorContains(t, err, "--clients: 8, expected at most ")
	_, err = Storage("a", trace).At(p, experiment.Values{"durable": true})
	require.ErrorContains(t, err, "profile spin-int: storage.kind: none, expected a device for --durable")
	_, err = Storage("a", trace).At(p, experiment.Values{"cores": 9})
	require.ErrorContains(t, err, "host.cores: 8, fewer than the 9 of --cores")
	nothing, err := spc.Read(strings.NewReader("0,0,0,R,0.0\n1,0,0,W,0.0\n0,0,512,W,0.0\n"), "a.spc")
	require.NoError(t, err)
	_, err = Storage("a.spc", nothing).At(p, experiment.Values{"requests": 2})
	require.EqualError(t, err, "a.spc: 2 requests, and each has a size of 0: there is nothing to be read or written")
	_, err = Storage("a.spc", nothing).At(p, nil)
	require.NoError(t, err)
	long, err := spc.Read(strings.NewReader("0,0,1,R,0.0\n0,0,1,W,999999\n"), "a.spc")
	require.NoError(t, err)
	_, err = Storage("a.spc", long).At(p, experiment.Values{"speed": 0.1})
	require.ErrorContains(t, err, "--speed: 0.1, too slow for a trace of 999999 s: its requests take longer than virtual time goes on, ")
	_, err = Storage("a.spc", long).At(p, experiment.Values{"speed": 0.25})
	require.NoError(t, err)
}
