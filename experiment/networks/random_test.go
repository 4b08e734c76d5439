package networks

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A campaign is resumable: network i is drawn from the seed and i alone.
var (
	campaignSeed = flag.Uint64("networks.seed", 1, "seed of the random networks")
	campaignFrom = flag.Int("networks.from", 0, "first random network")
	campaignRuns = flag.Int("networks.runs", 60, "how many random networks")
)

// drawn is a network, its law and its load.
type drawn struct {
	profile *profile.Profile
	nodes   int
	flows   []flow
	size    int
	cores   int
}

func (d *drawn) String() string {
	return fmt.Sprintf("%d nodes, %d cores, %v of %d B, %+v, %+v", d.nodes, d.cores, d.flows, d.size, d.profile.Fabric, d.profile.Transport)
}

func drawNetwork(r *rand.Rand) (*drawn, error) {
	p, err := profile.Load("uec")
	if err != nil {
		return nil, err
	}
	d := &drawn{profile: p, nodes: 2 + r.IntN(30), cores: 1 + r.IntN(3)}
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	f := &p.Fabric
	f.MTU = 256 << r.IntN(4)
	f.InjectBuffer = int64(f.MTU+f.Header) * r.Int64N(2)
	f.StoreAndForward = r.IntN(2) == 0
	f.Rate = sim.NewRate(sim.Time(10+r.IntN(300)), 1)
	drawShape(f, r, pick)
	f.Queue = int64(f.MTU+f.Header) * (1 + r.Int64N(40))
	f.Trim = pick("", fabric.TrimArriving, fabric.TrimEither)
	f.MarkFrom = r.Int64N(f.Queue / 2)
	f.MarkTo = f.Queue/2 + r.Int64N(f.Queue)
	t := &p.Transport
	if t.Way, t.Paths = "", 0; f.Paths == fabric.ByPacket {
		t.Way, t.Paths = laws.Ways[r.IntN(len(laws.Ways))].Name, 1<<r.IntN(9)
	}
	t.Law, t.FirstWindow, t.Window, t.Retries = laws.Rates[r.IntN(len(laws.Rates))].Name, r.IntN(100), 1+r.IntN(200), 1<<16
	if laws.Find(laws.Rates, t.Law).Rated {
		f.Rates = sim.Time(1+r.IntN(50)) * sim.Microsecond
		t.Way, t.Paths, f.Paths, f.Choices = "", 0, "", 0
	}
	t.GrantBytes, t.GrantShare = 1+r.IntN(1<<16), 0.5+r.Float64()/2
	t.Timeout = sim.Time(30+r.IntN(200)) * sim.Microsecond
	if r.IntN(2) == 0 {
		f.Faults = fabric.FaultSpec{
			Loss: r.Float64() / 20, Corrupt: r.Float64() / 20, Duplicate: r.Float64() / 20, Delay: r.Float64() / 20,
			MaxDelay: sim.Time(1+r.IntN(100)) * sim.Microsecond,
		}
	}
	d.size = 1 + r.IntN(1<<(4+r.IntN(13)))
	for range 1 + r.IntN(12) {
		d.flows = append(d.flows, flow{r.IntN(d.nodes), r.IntN(d.nodes)})
	}
	if f.Rates == 0 && f.Kind != fabric.Dragonfly && r.IntN(3) == 0 { // trees, so no circle of pauses
		f.Trim, f.Queue = "", 0
		f.PauseFrom = 1 + r.Int64N(1<<r.IntN(17))
		f.PauseUntil = r.Int64N(f.PauseFrom + 1)
		f.Switch = sim.Time(r.IntN(200)) * sim.Nanosecond // a pause is earlier than a packet
	}
	return d, p.Validate()
}

// drawShape draws switches and ways.
func drawShape(f *fabric.Spec, r *rand.Rand, pick func(...string) string) {
	f.Kind, f.LeafNodes, f.Spines, f.Paths = pick(fabric.LeafSpine, fabric.FatTree, fabric.Crossbar, fabric.Dragonfly), 0, 0, ""
	switch f.Kind {
	case fabric.LeafSpine:
		f.LeafNodes, f.Spines, f.Rails = 1+r.IntN(8), 1+r.IntN(8), r.IntN(4)
	case fabric.Dragonfly:
		f.LeafNodes, f.Group, f.Globals = 1+r.IntN(4), 2+r.IntN(4), 8
	case fabric.FatTree:
		f.Radix = 4 + 2*r.IntN(4)
	}
	switch f.Kind {
	case fabric.Crossbar:
	case fabric.Dragonfly:
		f.Paths = pick(fabric.ByDestination, fabric.ByFlow, fabric.ByPacket)
	default:
		f.Paths = pick(fabric.ByDestination, fabric.ByFlow, fabric.ByPacket, fabric.ByLoad)
	}
	if f.Choices = 0; f.Paths == fabric.ByLoad {
		f.Choices = 1 + r.IntN(4)
	}
}

// play brings messages of one size, and returns when each has ended. An error is
// a lost byte, a hang, or unequal books.
func play(p *profile.Profile, nodes, cores int, list []flow, starts []sim.Time, size int, slots map[string]runtime.Module) ([]sim.Time, error) {
	ends := make([]sim.Time, len(list))
	into := map[int][]int{}
	for i, f := range list {
		into[f.to] = append(into[f.to], i)
	}
	cfg := runtime.Config{Profile: p, Nodes: nodes, Seed: 1, Cores: cores, Slots: slots, Stop: func() error { return nil }}
	_, err := experiment.Simulate(context.Background(), cfg, func(c *runtime.Cluster) error {
		for to := range nodes {
			if of := into[to]; of != nil {
				if err := c.Spawn(to, "receiver", func(p *runtime.Proc) error { return receive(p, of, size) }); err != nil {
					return err
				}
			}
		}
		for i, f := range list {
			if err := c.Spawn(f.from, fmt.Sprint("sender", i), func(p *runtime.Proc) (err error) {
				if starts != nil {
					p.SleepUntil(starts[i])
				}
				ends[i], err = send(p, i, f.to, size)
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return nil })
	return ends, err
}

// On random networks with random laws, loads and faults every byte of every
// message arrives once, no run hangs, and several cores take the times of one.
func TestRandomNetworks(t *testing.T) {
	for i := range *campaignRuns {
		i += *campaignFrom
		d, err := drawNetwork(rand.New(rand.NewPCG(*campaignSeed, uint64(i))))
		require.NoError(t, err, "network %d", i)
		ends, err := play(d.profile, d.nodes, 1, d.flows, nil, d.size, nil)
		require.NoError(t, err, "-networks.seed=%d -networks.from=%d -networks.runs=1: %v", *campaignSeed, i, d)
		if d.cores > 1 {
			again, err := play(d.profile, d.nodes, d.cores, d.flows, nil, d.size, nil)
			require.NoError(t, err, "network %d on %d cores: %v", i, d.cores, d)
			require.Equal(t, ends, again, "network %d: %v", i, d)
		}
	}
}

// A law as a module has the times of the same law in Go, in whatever place.
func TestModulesAreTheLaws(t *testing.T) {
	slots := map[string]runtime.Module{
		runtime.SlotLaw: {Name: "nscc", Wasm: laws.NSCCModule}, runtime.SlotWay: {Name: "recycle", Wasm: laws.RecycleModule},
	}
	r := rand.New(rand.NewPCG(*campaignSeed, 0))
	for i := range 25 {
		d, err := drawNetwork(r)
		require.NoError(t, err)
		f := &d.profile.Fabric
		f.Kind, f.LeafNodes, f.Spines, f.Paths, f.Choices = fabric.LeafSpine, 4, 3, fabric.ByPacket, 0
		f.Group, f.Globals, f.Rates = 0, 0, 0
		d.profile.Transport.Law, d.profile.Transport.Way, d.profile.Transport.Paths = "nscc", "recycle", 32
		want, err := play(d.profile, d.nodes, 1, d.flows, nil, d.size, nil)
		require.NoError(t, err)
		if i%2 > 0 {
			d.profile.Transport.Law, d.profile.Transport.Way = "dctcp", "spray"
		}
		got, err := play(d.profile, d.nodes, d.cores, d.flows, nil, d.size, slots)
		require.NoError(t, err)
		require.Equal(t, want, got, "%v", d)
	}
}

// A deadlock of pauses has the same name on every number of cores.
func TestDeadlockOnCores(t *testing.T) {
	p, err := profile.Load("spin-dis", "fabric.kind=torus", "fabric.radix=0", "fabric.dims=[6]", "fabric.answers_first=true", "fabric.pause_from=16KiB")
	require.NoError(t, err)
	var around []flow
	for i := range 6 {
		around = append(around, flow{i, (i + 2) % 6})
	}
	_, first := play(p, 6, 1, around, nil, 1<<20, nil)
	require.ErrorContains(t, first, "still wait:\n  link Switch[0]")
	require.ErrorContains(t, first, "PFC deadlock")
	for cores := 2; cores < 4; cores++ {
		_, again := play(p, 6, cores, around, nil, 1<<20, nil)
		require.EqualError(t, again, first.Error())
	}
}
