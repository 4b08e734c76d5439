package experiment

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The output of the authors' own simulator for the broadcast of sPIN'17 §4.4.3
// (LogGOPSim2, commit 25d2286, free handlers, ns). In its terms, the path to
// rank 1,023 has 10 hops over 38 links of 83.4 ns. A hop takes an MTU of G, the
// G of its bytes once more, and 30 ns. The root takes o + L, and the end L. A
// hop on the host takes L + o + L in addition, and a triggered one L + L. At 64
// KiB, 15 packets wait 2 ns + (s-1)G each at every hop that receives whole
// messages. Where each is put to nine children, 15·9 packets of g + (s-1)G go
// before the last one.
func TestProfileOfTheAuthorsSimulator(t *testing.T) {
	const (
		links   = 38 * 83_400
		ends    = 65_000 + 50_000 + 50_000
		short   = 4095*20 + 7*20 + 30_000
		packet  = 4095*20 + 4095*20 + 30_000
		message = packet + 15*(4095*20+2_000)
	)
	for bytes, want := range map[int]map[string]sim.Time{
		8: {
			ModeRDMA: links + ends + 10*short + 9*165_000, ModeP4: links + ends + 10*short + 9*100_000,
			ModeSpinStore: links + ends + 10*short, ModeSpinStream: links + ends + 10*short,
		},
		64 << 10: {
			ModeRDMA: links + ends + 10*message + 9*165_000, ModeP4: links + ends + 10*message + 9*100_000,
			ModeSpinStore: links + ends + 10*message + 9*100_000, ModeSpinStream: links + ends + 10*packet + 15*9*(6_700+4095*20),
		},
	} {
		if testing.Short() && bytes > 8 {
			continue
		}
		got := latencies(t, builtin("bcast"), "spin-int-sc17", 1024, bytes)
		require.Equal(t, want, got)
		printed := map[int][]int64{8: {5940, 5355, 4455}, 64 << 10: {19342, 18757, 17233}}[bytes]
		for i, mode := range []string{ModeRDMA, ModeP4, ModeSpinStream} {
			require.Equal(t, printed[i], int64(got[mode]+500)/1000)
		}
	}
}

// sPIN'17 §4.4.3: store-and-forward is always within 5% of streaming for single
// packets, and of Portals 4 for longer messages.
func TestStoreAndForwardIsWithinFivePercent(t *testing.T) {
	for _, name := range []string{"spin-dis", "spin-int", "spin-dis-sc17", "spin-int-sc17"} {
		for _, ranks := range []int{4, 64, 256} {
			for _, bytes := range []int{1, 8, 4096} {
				l := latencies(t, builtin("bcast"), name, ranks, bytes, ModeSpinStream, ModeSpinStore)
				require.InEpsilon(t, l[ModeSpinStream].Nanoseconds(), l[ModeSpinStore].Nanoseconds(), 0.05, "%s, %d ranks, %d B", name, ranks, bytes)
			}
			for _, bytes := range []int{8192, 64 << 10} {
				l := latencies(t, builtin("bcast"), name, ranks, bytes, ModeP4, ModeSpinStore)
				require.InEpsilon(t, l[ModeP4].Nanoseconds(), l[ModeSpinStore].Nanoseconds(), 0.05, "%s, %d ranks, %d B", name, ranks, bytes)
			}
		}
	}
}

// Calibration of host.core_bandwidth: a message of 4 MiB, and its unpacking by
// the CPU, which reads and writes every byte once, give the 8.7 GiB/s of
// sPIN'17 §5.2.
func TestCopyRateGivesThePublishedUnpacking(t *testing.T) {
	const bytes = 4 << 20
	for _, name := range []string{"spin-dis", "spin-int"} {
		p, err := profile.Load(name)
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
		require.NoError(t, err)
		var took sim.Time
		require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
			packed, unpacked := p.Alloc(bytes), p.Alloc(bytes)
			in, err := AppendEntry(p.NI(), RequestPT, RequestBits, packed, nil)
			if err != nil {
				return err
			}
			err = in.Wait(bytes)
			p.Copy(unpacked, packed)
			took = p.Now()
			return err
		}))
		require.NoError(t, c.Spawn(0, "source", func(p *runtime.Proc) error {
			data := p.Alloc(bytes)
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: bytes})
			if err != nil {
				return err
			}
			return p.NI().Put(portals.Put{MD: md, Length: bytes, Target: Peer(1), PT: RequestPT, MatchBits: RequestBits})
		}))
		require.NoError(t, c.Run(context.Background()))
		require.NoError(t, c.Close())
		require.InEpsilon(t, 8.7, bytes/took.Seconds()/(1<<30), 0.005, name)
	}
}

// ownDevice is a user's profile with its own core and network.
const ownDevice = `
base: spin-int
name: own
description: a slower device
fabric: {kind: torus, radix: 0, dims: [2, 2], header: 16, switch_rate: 10ps/B, buffer: [16KiB, 8KiB]}
nic: {match_header: 10ns}
hpu: {cores: 8, clock: 1GHz, costs: scalar}
`

// A waterfall begins and ends at its profiles. It changes every field that
// differs once, and its changes add up.
func TestWaterfallLeadsFromOneProfileToTheOther(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(own, []byte(ownDevice), 0o600))
	ways := [][2]string{{"spin-int-sc17", "spin-int"}, {"spin-dis", "spin-int"}, {"spin-int", "spin-dis-sc17"}, {"spin-int", own}, {own, "spin-dis-sc17"}}
	for _, e := range []*Experiment{builtin("pingpong"), builtin("accumulate"), builtin("bcast"), builtin("hpus")} {
		for _, way := range ways {
			s := small(t, e)
			w, err := s.Waterfall(way[0], way[1])
			require.NoError(t, err)
			require.NoError(t, w.Run(context.Background(), func() {}))

			direct := *s
			direct.Profiles = way[:]
			points, err := direct.Points()
			require.NoError(t, err)
			results, err := direct.Run(context.Background(), points, nil)
			require.NoError(t, err)
			n := len(points) / 2
			last := w.Steps[len(w.Steps)-1]
			for i := range n {
				require.Equal(t, results[i].Values, w.Steps[0].Results[i].Values, "%s %v", e.Name, way)
				require.Equal(t, results[n+i].Values, last.Results[i].Values, "%s %v", e.Name, way)
				value, _ := w.measured(0, i)
				sum, _ := Magnitude(value)
				for k := 1; k < len(w.Steps); k++ {
					_, change := w.measured(k, i)
					x, ok := Magnitude(change)
					require.True(t, ok)
					sum += x
				}
				end, _ := w.measured(len(w.Steps)-1, i)
				x, _ := Magnitude(end)
				require.InDelta(t, x, sum, 1e-9*x)
			}
			left, err := profile.Diff(last.Points[0].Profile, points[n].Profile)
			require.NoError(t, err)
			require.Empty(t, left, "%s %v", e.Name, way)
			seen := map[string]bool{}
			for _, step := range w.Steps {
				for _, d := range step.Changes {
					require.False(t, seen[d.Path], d.Path)
					seen[d.Path] = true
				}
			}
			table, err := w.Table()
			require.NoError(t, err)
			require.Equal(t, len(w.Steps)*n, table.Len())
			require.Equal(t, len(w.Steps), w.Summary().Len())
		}
	}
}

// small is a sweep of an experiment at one size, on any device.
func small(t *testing.T, e *Experiment) *Sweep {
	s, err := New(e)
	require.NoError(t, err)
	require.NoError(t, s.Choose("size", "512"))
	if e == builtin("bcast") {
		require.NoError(t, s.Choose("ranks", "2"))
	}
	if e == builtin("hpus") {
		require.NoError(t, s.Choose("hpus", "2"))
		require.NoError(t, s.Choose("handler-time", "400ns"))
		s.Overrides = []string{"hpu.charge=cycles"}
	}
	return s
}
